// What core/parallel.h uses of OpenMP. backend/cpu supplies it when linking, as it supplies the device: OpenMP's header
// is included nowhere else. In a build without OpenMP there is one thread.
#pragma once

#include "symbind/core/parallel.h"

namespace symbind::openmp {

// How many threads the next loop of the calling thread gets, which need not be as many as were set: libgomp ends the
// process when the system cannot start them.
int max_threads();
void set_max_threads(int threads);

// Is the calling thread inside a loop of OpenMP's?
bool in_parallel();

void run_ranges(int64_t count, int threads, RangeFunction function, void* context);

}  // namespace symbind::openmp
