// Numbers that are functions of an element's index, for every device.
#pragma once

#include <cstdint>

#include "symbind/ops/contrib.h"

namespace symbind {

// start + step · (i / repeat), in numbers of type C, as Arange counts. Whole numbers wrap.
template <class C>
struct ArangeNumber {
  C start, step;
  int64_t repeat;
  constexpr C operator()(int64_t i) const {
    if constexpr (static_cast<C>(0.5) == C(0))
      return static_cast<C>(static_cast<uint64_t>(start) +
                            static_cast<uint64_t>(i / repeat) * static_cast<uint64_t>(step));
    else
      return start + static_cast<C>(i / repeat) * step;
  }
};

// Number `i` of the output of IndexArray: the index along one axis of element i / (number of axes).
struct IndexNumber {
  int64_t count = 0;  // number of requested axes
  int64_t strides[Shape::max_rank] = {}, extents[Shape::max_rank] = {};

  IndexNumber(const IndexArray& params, const Shape& data) {
    const auto steps = data.strides();
    const auto take = [&](int axis) {
      strides[count] = steps[static_cast<size_t>(axis)];
      extents[count++] = data[axis];
    };
    if (params.axes)
      for (const int64_t axis : *params.axes) take(data.axis(axis, "index_array"));
    else
      for (int axis = 0; axis < data.rank(); ++axis) take(axis);
  }
  constexpr int64_t operator()(int64_t i) const {
    const int64_t element = i / count, which = i % count;
    return element / strides[which] % extents[which];
  }
};

}  // namespace symbind
