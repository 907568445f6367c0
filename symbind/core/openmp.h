// The part of OpenMP that core/parallel.h uses. backend/cpu supplies it when linking, as it supplies the device:
// OpenMP's header is included nowhere else. In a build without OpenMP there is one thread.
#pragma once

#include "symbind/core/parallel.h"

namespace symbind::openmp {

// How many threads the next loop of the calling thread gets. It may be fewer than were set: libgomp terminates the
// process if the system cannot start them.
int max_threads();
void set_max_threads(int threads);

// Is the calling thread inside an OpenMP loop?
bool in_parallel();

// Keeps the threads of the calling thread's loops off its core. run_ranges() does so itself; for other loops it is
// called before them, and takes some nanoseconds while that thread stays on its core.
void separate_threads();

void run_ranges(int64_t count, int threads, RangeFunction function, void* context);

}  // namespace symbind::openmp
