// An array seen around one of its axes.
#pragma once

#include <cstdint>

#include "symbind/core/shape.h"

namespace symbind {

// An array (outer, length, inner): the axes before the middle one are counted together, and so are those after it. Its
// rows run along the middle axis, `inner` elements from one element of a row to the next.
struct AxisView {
  int64_t outer = 1, length = 1, inner = 1;

  constexpr int64_t size() const { return outer * length * inner; }
  constexpr int64_t row_count() const { return outer * inner; }
  constexpr int64_t row_start(int64_t row) const { return row / inner * length * inner + row % inner; }
};

// `axis` counts from the front.
inline AxisView view_along(const Shape& shape, int axis) {
  return {shape.size(0, axis), shape[axis], shape.size(axis + 1, shape.rank())};
}

}  // namespace symbind
