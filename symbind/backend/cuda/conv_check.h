// Values for trying a library's convolution, and the difference of two results for checking it against its definition.
#pragma once

#include <cstdint>

#include <cuda_runtime_api.h>

#include "symbind/core/dtype.h"

namespace symbind::cuda_backend {

// Values in [-1, 1) that use all bits of the type's mantissa, the same at each call. Floating types.
void queue_trial_values(cudaStream_t stream, DType dtype, void* array, int64_t count, uint32_t seed);

struct CheckedDifference {
  float largest_difference;  // NaN when a result has a NaN
  float largest_value;       // of the expected ones
};
// Writes to device memory.
void queue_difference(cudaStream_t stream, const float* result, const float* expected, int64_t count,
                      CheckedDifference* difference);

}  // namespace symbind::cuda_backend
