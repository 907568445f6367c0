#pragma once

#include <cuda_runtime.h>

#include "symbind/core/random.h"

namespace symbind::cuda_backend {

// Writes a cursor that travels in the launch itself.
void queue_cursor(cudaStream_t stream, RandomCursor* cursor, RandomCursor value);

}  // namespace symbind::cuda_backend
