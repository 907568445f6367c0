#include "symbind/backend/cpu/parallel.h"

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <system_error>
#include <thread>

#ifdef _OPENMP
#include <omp.h>
#endif

#include <pthread.h>
#include <unistd.h>

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

// libgomp's threads spin for milliseconds behind every loop, which takes the cores from other processes, unless more
// threads are in loops than there are cores: then they sleep after microseconds. The count is all that can be changed
// once libgomp is loaded, so a loop is begun whose threads sleep until the process ends. The user's settings
// OMP_WAIT_POLICY and GOMP_SPINCOUNT stay in force.
bool shorten_waits() {
  if (std::getenv("OMP_WAIT_POLICY") || std::getenv("GOMP_SPINCOUNT")) return false;
  const int cores = omp_get_num_procs();
  if (cores < 2) return false;
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);  // signals are for the program's own threads
  bool begun = true;
  try {
    std::thread([cores] {
#pragma omp parallel num_threads(cores)
      for (;;) ::pause();
    }).detach();
  } catch (const std::system_error&) {  // no more threads: then few will spin
    begun = false;
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return begun;
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
  static const bool shortened = shorten_waits();
  static_cast<void>(shortened);
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
