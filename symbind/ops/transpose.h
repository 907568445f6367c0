// Axes in another order.
#pragma once

#include "symbind/graph/builder.h"

namespace SYMBIND_API symbind {

struct Transpose {
  Tuple axes = {};  // empty: reversed
};
inline constexpr Builder<Transpose> transpose;

struct SwapAxis {
  int64_t dim1 = 0;
  int64_t dim2 = 0;
};
inline constexpr Builder<SwapAxis> swap_axis;

}  // namespace symbind
