// Pad along one axis, on every device: which element of the data each element of the result is a copy of, and the
// reverse. Both are computed, not stored in tables: a border may have any length.
#pragma once

#include <cstdint>
#include <vector>

#include "symbind/core/shape.h"
#include "symbind/ops/pad.h"

namespace symbind {

struct PadAxis {
  enum class Mode { constant, edge, reflect };
  Mode mode;
  int64_t before, extent, length;  // the border in front, the extent of the data and that of the result
  int64_t step;                    // from one element to the next in the array that is read

  // The index in the data of the element that this position of the result holds; -1: the constant.
  constexpr int64_t shown_at(int64_t position) const {
    const int64_t index = position - before;
    if (index >= 0 && index < extent) return index;
    if (mode == Mode::constant) return -1;
    if (mode == Mode::edge) return index < 0 ? 0 : extent - 1;
    return index < 0 ? -index : 2 * (extent - 1) - index;
  }

  // How many positions of the result hold this element of the data, and the n-th of them from the front.
  constexpr int64_t position_count(int64_t index) const {
    if (mode == Mode::constant) return 1;
    if (mode == Mode::edge) return 1 + (index == 0 ? before : 0) + (index == extent - 1 ? length - before - extent : 0);
    return 1 + (is_mirrored_before(index) ? 1 : 0) + (is_mirrored_after(index) ? 1 : 0);
  }
  constexpr int64_t position(int64_t index, int64_t n) const {
    const int64_t own = before + index;
    if (mode == Mode::constant) return own;
    if (mode == Mode::edge) return (index == 0 ? 0 : own) + n;
    if (is_mirrored_before(index)) {
      if (n == 0) return before - index;
      --n;
    }
    return n == 0 ? own : own + 2 * (extent - 1 - index);
  }

 private:
  constexpr bool is_mirrored_before(int64_t index) const { return index > 0 && index <= before; }
  constexpr bool is_mirrored_after(int64_t index) const {
    return index < extent - 1 && before + index + 2 * (extent - 1 - index) < length;
  }
};

// One for each axis; `read` is the shape of the array that is read.
inline std::vector<PadAxis> pad_axes(const Pad& p, const Shape& data, const Shape& result, const Shape& read) {
  const auto mode = p.mode == "constant" ? PadAxis::Mode::constant
                    : p.mode == "edge"   ? PadAxis::Mode::edge
                                         : PadAxis::Mode::reflect;
  const auto strides = read.strides();
  std::vector<PadAxis> axes;
  for (int axis = 0; axis < data.rank(); ++axis) {
    const auto i = static_cast<size_t>(axis);
    axes.push_back({mode, p.pad_width[2 * i], data[axis], result[axis], strides[i]});
  }
  return axes;
}

}  // namespace symbind
