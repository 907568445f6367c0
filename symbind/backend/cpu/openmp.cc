#include "symbind/core/openmp.h"

#include <algorithm>
#include <exception>

#ifdef _OPENMP
#include <omp.h>

#include "symbind/backend/cpu/thread_cores.h"
#endif

namespace symbind::openmp {

#ifdef _OPENMP

namespace {

// How many threads a loop can get. oneDNN divides its work by the number that it asks for and computes only a part of
// the result if it gets fewer, so OMP_THREAD_LIMIT, OMP_MAX_ACTIVE_LEVELS and OMP_DYNAMIC must be respected here.
int most_threads() {
  static const int most = std::max(64, 4 * omp_get_num_procs());
  if (omp_get_dynamic()) omp_set_dynamic(false);
  if (omp_get_active_level() >= omp_get_max_active_levels()) return 1;
  return std::min(most, omp_get_thread_limit());
}

}  // namespace

int max_threads() { return std::min(omp_get_max_threads(), most_threads()); }

void set_max_threads(int threads) {
  const int possible = std::min(threads, most_threads());
  if (possible != omp_get_max_threads()) omp_set_num_threads(possible);
}

bool in_parallel() { return omp_in_parallel(); }

void separate_threads() {
  if (omp_get_proc_bind() != omp_proc_bind_false) return;  // the user has chosen the cores
  thread_local cpu::ThreadCores cores;
  cores.keep_apart(max_threads(), [](int threads, const std::function<void(int)>& function) {
#pragma omp parallel num_threads(threads)
    function(omp_get_thread_num());
  });
}

// Every loop uses all threads of the calling thread, even if it has fewer pieces: when a team is smaller than the
// previous one, libgomp ends the superfluous threads, and starts others for the next large team. oneDNN's loops use all
// threads.
void run_ranges(int64_t count, int pieces, RangeFunction function, void* context) {
  separate_threads();
  std::exception_ptr thrown;
#pragma omp parallel num_threads(std::max(pieces, max_threads()))
  {
    try {
      for (int piece = omp_get_thread_num(); piece < pieces; piece += omp_get_num_threads())
        run_piece(count, piece, pieces, function, context);
    } catch (...) {
#pragma omp critical(symbind_thrown)
      thrown = std::current_exception();
    }
  }
  if (thrown) std::rethrow_exception(thrown);
}

#else

int max_threads() { return 1; }
void set_max_threads(int) {}
bool in_parallel() { return false; }
void separate_threads() {}
void run_ranges(int64_t count, int, RangeFunction function, void* context) { function(context, 0, count); }

#endif

}  // namespace symbind::openmp
