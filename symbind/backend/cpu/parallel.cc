#include "symbind/backend/cpu/parallel.h"

#include <algorithm>
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

thread_local LoopThreads* loop_threads = nullptr;

void run_range(int64_t count, int64_t piece, int64_t pieces, RangeFunction function, void* context) {
  const int64_t begin = count * piece / pieces, end = count * (piece + 1) / pieces;
  if (begin < end) function(context, begin, end);
}

}  // namespace

LoopsOn::LoopsOn(LoopThreads* threads) : before_(loop_threads) { loop_threads = threads; }
LoopsOn::~LoopsOn() { loop_threads = before_; }

#ifdef _OPENMP

namespace {

// OMP_NUM_THREADS may ask for any number; libgomp ends the process when the system cannot start as many.
int most_threads() {
  static const int most = std::max(64, 4 * omp_get_num_procs());
  return most;
}

}  // namespace

int available_threads() {
  if ((fork_watch == 0 && forked) || omp_in_parallel()) return 1;
  return loop_threads ? loop_threads->count() : std::min(omp_get_max_threads(), most_threads());
}

void set_thread_share(int threads) { omp_set_num_threads(threads > 0 ? threads : omp_get_num_procs()); }

void run_ranges(int64_t count, int threads, RangeFunction function, void* context) {
  if (loop_threads)
    return loop_threads->run_pieces(threads, [&](int piece) { run_range(count, piece, threads, function, context); });
  std::exception_ptr thrown;
#pragma omp parallel num_threads(threads)
  {
    try {
      run_range(count, omp_get_thread_num(), omp_get_num_threads(), function, context);
    } catch (...) {
#pragma omp critical(symbind_thrown)
      thrown = std::current_exception();
    }
  }
  if (thrown) std::rethrow_exception(thrown);
}

#else

int available_threads() { return loop_threads && !(fork_watch == 0 && forked) ? loop_threads->count() : 1; }
void set_thread_share(int) {}
void run_ranges(int64_t count, int threads, RangeFunction function, void* context) {
  if (!loop_threads) return function(context, 0, count);
  loop_threads->run_pieces(threads, [&](int piece) { run_range(count, piece, threads, function, context); });
}

#endif

}  // namespace symbind::cpu_backend
