// Borders around an array.
#pragma once

#include "symbind/graph/builder.h"
#include "symbind/ops/choices.h"

namespace SYMBIND_API symbind {

struct Pad {
  Required<std::string> mode = {};
  Required<Tuple> pad_width = {};  // before and after, axis by axis
  double constant_value = 0;
};
inline constexpr Builder<Pad> pad;

// (out_grad) → data_grad
struct PadGrad : Pad {};
inline constexpr Builder<PadGrad> pad_grad;

}  // namespace symbind
