// FullyConnected: the affine map of a network, and its form with an activation applied to the result.
#pragma once

#include "symbind/graph/builder.h"

namespace SYMBIND_API symbind {

struct FullyConnected {
  Required<int64_t> num_hidden = {};
  bool no_bias = false;
  bool flatten = true;
};
inline constexpr Builder<FullyConnected> fully_connected;

// Made by the fuse pass; act_type is Activation's.
struct FullyConnectedActivation : FullyConnected {
  Required<std::string> act_type = {};
};
inline constexpr Builder<FullyConnectedActivation> fully_connected_activation;

// Made by the fuse pass for a weight with many readers: the weight is transposed, (inner, hidden).
struct FullyConnectedTransposed : FullyConnected {};

// The matrix product it computes: (rows × inner)·(hidden × inner)ᵀ.
struct FullyConnectedSize {
  int64_t rows, inner, hidden;
};
FullyConnectedSize size_of(const FullyConnected& params, const Shape& data);

}  // namespace symbind
