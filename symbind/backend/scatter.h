// Maps indices to the slices of an array that they replace, for every device.
#pragma once

#include <cstdint>

#include "symbind/backend/convert.h"
#include "symbind/passes/target.h"

namespace symbind {

// An array as `slots` slices of `inner` elements, and `count` slices that replace the slots given by the indices.
struct Replacing {
  int64_t slots = 1, inner = 1, count = 0;
  int axes = 0;  // rows of the indices; each slot has one index per axis
  int64_t extents[Shape::max_rank] = {};

  // nd: the indices have a row per axis; otherwise they are rows of the array.
  Replacing(const Shape& array, const Shape& indices, bool nd) : axes(nd ? static_cast<int>(indices[0]) : 1) {
    count = nd ? indices.size(1, indices.rank()) : indices[0];
    for (int axis = 0; axis < axes; ++axis) slots *= extents[axis] = array[axis];
    inner = array.size(axes, array.rank());
  }

  // The slot of index number i, -1: none. value(k) is element k of the indices. Calls refuse(axis, index) for one that
  // is outside of its axis.
  template <class Value, class Refuse>
  constexpr int64_t slot(int64_t i, const Value& value, const Refuse& refuse) const {
    int64_t flat = 0;
    for (int axis = 0; axis < axes; ++axis) {
      const int64_t index = value(axis * count + i);
      if (index < 0 || index >= extents[axis]) {
        refuse(axis, index);
        return -1;
      }
      flat = flat * extents[axis] + index;
    }
    return flat;
  }
};

}  // namespace symbind
