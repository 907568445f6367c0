// Parts of arrays along several axes: reading makes a copy, assigning writes into the array. (Along the first axis
// alone NDArray::at and NDArray::slice are views.)
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "symbind/core/ndarray.h"

namespace SYMBIND_API symbind {

// One axis: begin:end:step as in Python; AxisRange{} is the whole axis.
struct AxisRange {
  std::optional<int64_t> begin = std::nullopt;
  std::optional<int64_t> end = std::nullopt;
  std::optional<int64_t> step = std::nullopt;
};

// subarray(a, {{}, {1, 3}}) is a[:, 1:3].
NDArray subarray(const NDArray& array, const std::vector<AxisRange>& ranges);
// The value's shape is that of the part, or broadcasts to it.
void assign(NDArray& array, const std::vector<AxisRange>& ranges, const NDArray& value);
void assign(NDArray& array, const std::vector<AxisRange>& ranges, double value);

}  // namespace symbind
