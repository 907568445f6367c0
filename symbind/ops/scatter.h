// An array with some of its slices replaced. If an index occurs several times the last one wins; indices out of range
// are ignored.
#pragma once

#include "symbind/graph/builder.h"

namespace SYMBIND_API symbind {

// old_tensor with row index_vector[i] replaced by row i of new_tensor.
struct IndexCopy {};
inline constexpr Builder<IndexCopy> index_copy;

// lhs with lhs[indices[0, i], indices[1, i], …] replaced by rhs[i]. shape is that of lhs.
struct ScatterSetNd {
  Required<Tuple> shape = {};
};
inline constexpr Builder<ScatterSetNd> scatter_set_nd;

// (out_grad, indices, new) → the gradients of the array and of what replaced its slices; of `new` only the shape is
// read. `nd`: are the indices those of scatter_set_nd?
struct ReplaceGrad {
  bool nd = false;
};
inline constexpr Builder<ReplaceGrad> replace_grad;

}  // namespace symbind
