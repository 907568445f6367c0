// Concatenation of arrays along an existing or a new axis, and splitting.
#pragma once

#include "symbind/graph/builder.h"

namespace SYMBIND_API symbind {

struct Concat {
  Required<int64_t> num_args = {};
  int64_t dim = 1;
};
inline constexpr Builder<Concat> concat;

// The gradient of Concat: (out_grad, all the inputs, of which only the shapes are read) → the part of each.
struct ConcatGrad : Concat {};
inline constexpr Builder<ConcatGrad> concat_grad;

struct Stack {
  int64_t axis = 0;
  Required<int64_t> num_args = {};
};
inline constexpr Builder<Stack> stack;

// (out_grad) → the gradient of each input
struct StackGrad : Stack {};
inline constexpr Builder<StackGrad> stack_grad;

struct SliceChannel {
  Required<int64_t> num_outputs = {};
  int64_t axis = 1;
  bool squeeze_axis = false;
};
inline constexpr Builder<SliceChannel> slice_channel;

// (the gradients of all outputs) → data_grad
struct SliceChannelGrad : SliceChannel {};
inline constexpr Builder<SliceChannelGrad> slice_channel_grad;

}  // namespace symbind
