#include "symbind/backend/cpu/parallel.h"

#include <exception>

#ifdef _OPENMP
#include <omp.h>
#endif

#include <pthread.h>

namespace symbind::cpu_backend {
namespace {

// libgomp's pool of threads does not survive a fork: a child computes on its own thread.
bool forked = false;
const int fork_watch = pthread_atfork(nullptr, nullptr, [] { forked = true; });

}  // namespace

#ifdef _OPENMP

int available_threads() { return (fork_watch == 0 && forked) || omp_in_parallel() ? 1 : omp_get_max_threads(); }

void set_thread_share(int threads) { omp_set_num_threads(threads > 0 ? threads : omp_get_num_procs()); }

void run_ranges(int64_t count, int threads, RangeFunction function, void* context) {
  std::exception_ptr thrown;
#pragma omp parallel num_threads(threads)
  {
    const int64_t piece = omp_get_thread_num(), pieces = omp_get_num_threads();
    try {
      const int64_t begin = count * piece / pieces, end = count * (piece + 1) / pieces;
      if (begin < end) function(context, begin, end);
    } catch (...) {
#pragma omp critical(symbind_thrown)
      thrown = std::current_exception();
    }
  }
  if (thrown) std::rethrow_exception(thrown);
}

#else

int available_threads() { return 1; }
void set_thread_share(int) {}
void run_ranges(int64_t count, int, RangeFunction function, void* context) { function(context, 0, count); }

#endif

}  // namespace symbind::cpu_backend
