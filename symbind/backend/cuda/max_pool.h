// Max pooling in two parts: the maximum of each window and which of its elements that is; and the gradient of the data
// from the latter alone.
#pragma once

#include <cstddef>

#include <cuda_runtime_api.h>

#include "symbind/core/dtype.h"

namespace symbind::cuda_backend {

struct PoolWindows;

// The bytes of the index of one element in its window: 1 where that is the index of ops/pool_indices.h.
size_t max_index_bytes(const PoolWindows& windows);
// Writes the maxima and their indices, either of which may be null. The arrays are of this floating-point type.
void queue_maxima(cudaStream_t stream, DType dtype, const PoolWindows& windows, const void* data, void* maxima,
                  void* indices);
void queue_max_gradient(cudaStream_t stream, DType dtype, const PoolWindows& windows, const void* out_grad,
                        const void* indices, void* data_grad);

}  // namespace symbind::cuda_backend
