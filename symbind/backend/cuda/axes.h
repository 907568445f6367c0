// Axes reduced to as few as possible: axes of extent 1 are dropped, adjacent axes that are treated alike are merged.
#pragma once

#include <cstdint>

#include "symbind/core/shape.h"

namespace symbind::cuda_backend {

// Two arrays read along the axes of a result; a stride of zero repeats an element.
struct BroadcastAxes {
  int rank = 0;
  int64_t extent[Shape::max_rank] = {};
  int64_t stride_a[Shape::max_rank] = {};
  int64_t stride_b[Shape::max_rank] = {};

  BroadcastAxes() = default;
  BroadcastAxes(const Shape& out, const Shape& a, const Shape& b);
  // Are both arrays read contiguously?
  bool plain() const { return rank <= 1 && stride_a[0] == 1 && stride_b[0] == 1; }
};

}  // namespace symbind::cuda_backend
