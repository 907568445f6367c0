// Axes put in and left out, exchanged, run through backwards; blocks of space turned into channels and back.
#pragma once

#include "symbind/graph/builder.h"

namespace SYMBIND_API symbind {

struct ExpandDims {
  Required<int64_t> axis = {};
};
inline constexpr Builder<ExpandDims> expand_dims;

struct Squeeze {
  std::optional<Tuple> axis = std::nullopt;  // none: all of extent 1
};
inline constexpr Builder<Squeeze> squeeze;

struct SwapAxis {
  int64_t dim1 = 0;
  int64_t dim2 = 0;
};
inline constexpr Builder<SwapAxis> swap_axis;

struct Reverse {
  Required<Tuple> axis = {};
};
inline constexpr Builder<Reverse> reverse;

struct DepthToSpace {
  Required<int64_t> block_size = {};
};
inline constexpr Builder<DepthToSpace> depth_to_space;
struct SpaceToDepth {
  Required<int64_t> block_size = {};
};
inline constexpr Builder<SpaceToDepth> space_to_depth;

}  // namespace symbind
