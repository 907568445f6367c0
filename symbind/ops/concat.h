// Arrays joined along an axis.
#pragma once

#include "symbind/graph/builder.h"

namespace symbind {

struct Concat {
  int64_t num_args = required;
  int64_t dim = 1;
};
inline constexpr Builder<Concat> concat;

// The gradient of Concat: (out_grad, all the inputs, of which only the shapes are read) → the part of each.
struct ConcatGrad : Concat {};
inline constexpr Builder<ConcatGrad> concat_grad;

void register_concat(OpRegistry& registry);

}  // namespace symbind
