// Axes put in and left out, exchanged, run through backwards; blocks of space turned into channels and back.
#pragma once

#include "symbind/graph/builder.h"

namespace symbind {

struct ExpandDims {
  int64_t axis = required;
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
  Tuple axis = required;
};
inline constexpr Builder<Reverse> reverse;

struct DepthToSpace {
  int64_t block_size = required;
};
inline constexpr Builder<DepthToSpace> depth_to_space;
struct SpaceToDepth {
  int64_t block_size = required;
};
inline constexpr Builder<SpaceToDepth> space_to_depth;

void register_rearrange(OpRegistry& registry);

}  // namespace symbind
