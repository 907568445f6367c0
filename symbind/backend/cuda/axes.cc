#include "symbind/backend/cuda/axes.h"

#include <array>

namespace symbind::cuda_backend {
namespace {

// The step in elements along each axis of `out`; zero where the array, aligned at the last axis, has extent 1 or none.
std::array<int64_t, Shape::max_rank> strides_along(const Shape& out, const Shape& shape) {
  std::array<int64_t, Shape::max_rank> strides{};
  const auto own = shape.strides();
  const int missing = out.rank() - shape.rank();
  for (int axis = missing; axis < out.rank(); ++axis)
    if (shape[axis - missing] != 1) strides[static_cast<size_t>(axis)] = own[static_cast<size_t>(axis - missing)];
  return strides;
}

}  // namespace

BroadcastAxes::BroadcastAxes(const Shape& out, const Shape& a, const Shape& b) {
  const auto along_a = strides_along(out, a), along_b = strides_along(out, b);
  for (int axis = 0; axis < out.rank(); ++axis) {
    const auto at = static_cast<size_t>(axis);
    if (out[axis] == 1) continue;
    const int last = rank - 1;
    // The strides of the previous axis are multiples of this one in both arrays: merge the axes.
    if (rank > 0 && stride_a[last] == along_a[at] * out[axis] && stride_b[last] == along_b[at] * out[axis]) {
      extent[last] *= out[axis];
      stride_a[last] = along_a[at];
      stride_b[last] = along_b[at];
    } else {
      extent[rank] = out[axis];
      stride_a[rank] = along_a[at];
      stride_b[rank] = along_b[at];
      ++rank;
    }
  }
  if (rank == 0) {  // a single element
    rank = 1;
    extent[0] = stride_a[0] = stride_b[0] = 1;
  }
}

}  // namespace symbind::cuda_backend
