// Reversed axes; spatial blocks rearranged into channels and back.
#pragma once

#include "symbind/graph/builder.h"

namespace SYMBIND_API symbind {

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
