// Many arrays converted to another type or layout, and multiplied by a number, in one operator.
#pragma once

#include "symbind/graph/builder.h"

namespace symbind {

// (data_0, …, [scale]) → output_0, …: each array in the type `dtype`, by default its own; with `scaled`, times the one
// number of the float32 array scale. The product is computed in float32, for float64 arrays in float64.
// An array may have another layout afterwards, plain or channels-last: the tensors say which.
struct ConvertArrays {
  Required<int64_t> num_arrays = {};
  std::optional<DType> dtype = {};
  bool scaled = false;
};
inline constexpr Builder<ConvertArrays> convert_arrays;

}  // namespace symbind
