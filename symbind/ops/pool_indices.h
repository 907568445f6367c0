// Max pooling that also returns where the maxima are, so that its gradient does not read the data. Only the fuse pass
// creates it.
#pragma once

#include "symbind/ops/pool.h"

namespace symbind {

// pool_type max. Outputs: output, and indices (uint8): for each window the index among its elements, padding included
// and the last axis fastest, of the first of the largest; if the first element inside the data is NaN, of that one.
// no_pooling_index for a window without elements. A window has less than no_pooling_index elements.
struct PoolingIndices : Pooling {};
inline constexpr Builder<PoolingIndices> pooling_indices;

// (out_grad, indices, data for its shape) → data_grad
struct PoolingIndicesGrad : Pooling {};
inline constexpr Builder<PoolingIndicesGrad> pooling_indices_grad;

inline constexpr uint8_t no_pooling_index = 255;
// Does the type hold the indices of windows of this size?
bool has_pooling_indices(const PoolingSize& size);

}  // namespace symbind
