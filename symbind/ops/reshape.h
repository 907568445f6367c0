// The same elements, in the same order, in another shape.
#pragma once

#include "symbind/graph/builder.h"

namespace SYMBIND_API symbind {

struct Flatten {};
inline constexpr Builder<Flatten> flatten;

struct Reshape {
  Tuple shape = {};
  bool reverse = false;
  Tuple target_shape = {};  // an older form of shape, with its own codes
  bool keep_highest = false;
};
inline constexpr Builder<Reshape> reshape;

struct ReshapeLike {
  std::optional<int64_t> lhs_begin = std::nullopt;
  std::optional<int64_t> lhs_end = std::nullopt;
  std::optional<int64_t> rhs_begin = std::nullopt;
  std::optional<int64_t> rhs_end = std::nullopt;
};
inline constexpr Builder<ReshapeLike> reshape_like;

struct ExpandDims {
  Required<int64_t> axis = {};
};
inline constexpr Builder<ExpandDims> expand_dims;

struct Squeeze {
  TupleOrNone axis = {};  // none: all of extent 1
};
inline constexpr Builder<Squeeze> squeeze;

}  // namespace symbind
