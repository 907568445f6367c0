// Borders around an array.
#pragma once

#include "symbind/graph/builder.h"

namespace symbind {

struct Pad {
  std::string mode = required;
  Tuple pad_width = required;  // before and behind, axis by axis
  double constant_value = 0;
};
inline constexpr Builder<Pad> pad;

// (out_grad) → data_grad
struct PadGrad : Pad {};
inline constexpr Builder<PadGrad> pad_grad;

// For each index along an axis of the result, the index of the data it shows; -1: the constant.
std::vector<int64_t> padded_indices(const Pad& params, int axis, int64_t extent);

void register_pad(OpRegistry& registry);

}  // namespace symbind
