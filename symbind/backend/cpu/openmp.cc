#include "symbind/core/openmp.h"

#include <algorithm>
#include <exception>

#ifdef _OPENMP
#include <omp.h>
#endif

namespace symbind::openmp {

#ifdef _OPENMP

int max_threads() {
  static const int most = std::max(64, 4 * omp_get_num_procs());
  return std::min(omp_get_max_threads(), most);
}

void set_max_threads(int threads) {
  if (threads != omp_get_max_threads()) omp_set_num_threads(threads);
}

bool in_parallel() { return omp_in_parallel(); }

// Every loop uses all threads of the calling thread, even if it has fewer pieces: when a team is smaller than the
// previous one, libgomp ends the superfluous threads, and starts others for the next large team. oneDNN's loops use all
// threads.
void run_ranges(int64_t count, int pieces, RangeFunction function, void* context) {
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
void run_ranges(int64_t count, int, RangeFunction function, void* context) { function(context, 0, count); }

#endif

}  // namespace symbind::openmp
