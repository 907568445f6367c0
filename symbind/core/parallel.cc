#include "symbind/core/parallel.h"

#include <pthread.h>

#include "symbind/core/openmp.h"
#include "symbind/core/workers.h"

namespace symbind {
namespace {

// libgomp's pool of threads does not survive a fork: a child computes on its own thread.
bool is_forked_child = false;
const int fork_watch = pthread_atfork(nullptr, nullptr, [] { is_forked_child = true; });

// The rest of the policy is in OpenMP, which stores the number of threads per calling thread.
thread_local Workers* workers_of_loops = nullptr;

}  // namespace

ThreadPolicy thread_policy() { return {openmp::max_threads(), workers_of_loops}; }

ThreadScope::ThreadScope(ThreadPolicy policy) : before_(thread_policy()) {
  openmp::set_max_threads(policy.threads);
  workers_of_loops = policy.workers;
}

ThreadScope::~ThreadScope() {
  openmp::set_max_threads(before_.threads);
  workers_of_loops = before_.workers;
}

int available_threads() {
  if ((fork_watch == 0 && is_forked_child) || openmp::in_parallel()) return 1;
  return workers_of_loops ? static_cast<int>(workers_of_loops->count()) : openmp::max_threads();
}

void run_ranges(int64_t count, int threads, RangeFunction function, void* context) {
  if (!workers_of_loops) return openmp::run_ranges(count, threads, function, context);
  const size_t step = workers_of_loops->count();
  workers_of_loops->run([&](size_t worker) {
    for (size_t piece = worker; piece < static_cast<size_t>(threads); piece += step)
      run_piece(count, static_cast<int>(piece), threads, function, context);
  });
}

}  // namespace symbind
