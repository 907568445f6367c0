// Operators that change an array's shape, the order of its axes or its type.
#pragma once

#include "symbind/graph/builder.h"

namespace SYMBIND_API symbind {

struct Flatten {};
inline constexpr Builder<Flatten> flatten;

struct Reshape {
  Tuple shape = {};
  bool reverse = false;
  Tuple target_shape = {};  // an older spelling of shape, with codes of its own
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

struct Transpose {
  Tuple axes = {};  // empty: reversed
};
inline constexpr Builder<Transpose> transpose;

struct Cast {
  Required<DType> dtype = {};
};
inline constexpr Builder<Cast> cast;

// The gradient of Cast: (out_grad, data) → out_grad in the type of data, of which nothing else is read.
struct CastLike {};
inline constexpr Builder<CastLike> cast_like;

}  // namespace symbind
