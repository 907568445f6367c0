// Checks a library's convolution against its definition: test values, and the difference of two results.
#pragma once

#include <cstdint>

#include <cuda_runtime_api.h>

namespace symbind::cuda_backend {

// Values in [-1, 1) that use all bits of a float's mantissa, the same at each call.
void queue_check_values(cudaStream_t stream, float* array, int64_t count, uint32_t seed);

struct CheckedDifference {
  float largest_difference;  // NaN when a result has a NaN
  float largest_value;       // of the expected ones
};
// Writes to device memory.
void queue_difference(cudaStream_t stream, const float* result, const float* expected, int64_t count,
                      CheckedDifference* difference);

}  // namespace symbind::cuda_backend
