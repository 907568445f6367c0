// Count sketch: a random projection that adds each element of a row, with a sign, to one of a few sums.
#pragma once

#include "symbind/graph/builder.h"

namespace SYMBIND_API symbind {

// data (batch, d), h and s (d or 1 × d): element i of a row is added to sum h[i] of out_dim with the sign s[i].
struct CountSketch {
  Required<int64_t> out_dim;
  int64_t processing_batch_size = 32;
};
inline constexpr Builder<CountSketch> count_sketch;

// (out_grad, h, s) → data_grad
struct CountSketchGrad : CountSketch {};
inline constexpr Builder<CountSketchGrad> count_sketch_grad;

}  // namespace symbind
