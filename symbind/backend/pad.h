// Pad along one axis, on every device: which element of the data each element of the result is a copy of, and the
// reverse. Both are computed, not stored in tables: a border may have any length. A negative border cuts off elements.
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

  // The positions of the result that hold the data itself: [inside_begin(), inside_end()).
  constexpr int64_t inside_begin() const { return within(before); }
  constexpr int64_t inside_end() const { return within(before + extent); }

  // How many positions of the result hold this element of the data, and the n-th of them from the front.
  constexpr int64_t position_count(int64_t index) const {
    const int64_t own = is_inside(before + index) ? 1 : 0;
    if (mode == Mode::constant) return own;
    if (mode == Mode::edge)
      return own + (index == 0 ? inside_begin() : 0) + (index == extent - 1 ? length - inside_end() : 0);
    return own + (is_mirrored_before(index) ? 1 : 0) + (is_mirrored_after(index) ? 1 : 0);
  }
  constexpr int64_t position(int64_t index, int64_t n) const {
    const int64_t own = before + index;
    if (mode == Mode::constant) return own;
    if (mode == Mode::edge) return (index == 0 || own < 0 ? 0 : own) + n;
    if (is_mirrored_before(index)) {
      if (n == 0) return before - index;
      --n;
    }
    return n == 0 && is_inside(own) ? own : mirrored_after(index);
  }

 private:
  constexpr int64_t within(int64_t position) const { return position < 0 ? 0 : position < length ? position : length; }
  constexpr bool is_inside(int64_t position) const { return position >= 0 && position < length; }
  constexpr bool is_mirrored_before(int64_t index) const { return index > 0 && is_inside(before - index); }
  constexpr bool is_mirrored_after(int64_t index) const {
    return index < extent - 1 && is_inside(mirrored_after(index));
  }
  constexpr int64_t mirrored_after(int64_t index) const { return before + 2 * (extent - 1) - index; }
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
