// Shapes as numbers, and indices of an array as one number or one number per axis.
#pragma once

#include "symbind/graph/builder.h"

namespace SYMBIND_API symbind {

struct ShapeArray {};
inline constexpr Builder<ShapeArray> shape_array;
struct SizeArray {};
inline constexpr Builder<SizeArray> size_array;

struct RavelMultiIndex {
  Required<Tuple> shape = {};  // the first extent counts for nothing, and may be -1
};
inline constexpr Builder<RavelMultiIndex> ravel_multi_index;
struct UnravelIndex {
  Required<Tuple> shape = {};
};
inline constexpr Builder<UnravelIndex> unravel_index;

}  // namespace symbind
