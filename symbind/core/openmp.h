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

// Before loops of the calling thread that it does not start by run_ranges(): moves threads that share a core while
// others are free. It takes some nanoseconds if there are none.
void separate_threads();

void run_ranges(int64_t count, int threads, RangeFunction function, void* context);

}  // namespace symbind::openmp
