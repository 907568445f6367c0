// Shapes as arrays, and conversion between flat and per-axis indices.
#pragma once

#include "symbind/graph/builder.h"

namespace SYMBIND_API symbind {

struct ShapeArray {};
inline constexpr Builder<ShapeArray> shape_array;
struct SizeArray {};
inline constexpr Builder<SizeArray> size_array;

struct RavelMultiIndex {
  Required<Tuple> shape = {};  // the first extent is not used, and may be -1
};
inline constexpr Builder<RavelMultiIndex> ravel_multi_index;
struct UnravelIndex {
  Required<Tuple> shape = {};
};
inline constexpr Builder<UnravelIndex> unravel_index;

}  // namespace symbind
