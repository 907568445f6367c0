// Functions of two arrays whose shapes are broadcast as in NumPy, and arrays broadcast to a given shape.
#pragma once

#include "symbind/core/fixed_string.h"
#include "symbind/graph/builder.h"

namespace SYMBIND_API symbind {

template <FixedString name>
struct Broadcast {};

inline constexpr Builder<Broadcast<"broadcast_add">> broadcast_add;
inline constexpr Builder<Broadcast<"broadcast_sub">> broadcast_sub;
inline constexpr Builder<Broadcast<"broadcast_mul">> broadcast_mul;
inline constexpr Builder<Broadcast<"broadcast_div">> broadcast_div;
inline constexpr Builder<Broadcast<"broadcast_power">> broadcast_power;
inline constexpr Builder<Broadcast<"broadcast_equal">> broadcast_equal;
inline constexpr Builder<Broadcast<"broadcast_not_equal">> broadcast_not_equal;
inline constexpr Builder<Broadcast<"broadcast_greater">> broadcast_greater;
inline constexpr Builder<Broadcast<"broadcast_greater_equal">> broadcast_greater_equal;
inline constexpr Builder<Broadcast<"broadcast_lesser">> broadcast_lesser;
inline constexpr Builder<Broadcast<"broadcast_lesser_equal">> broadcast_lesser_equal;
inline constexpr Builder<Broadcast<"broadcast_maximum">> broadcast_maximum;
inline constexpr Builder<Broadcast<"broadcast_minimum">> broadcast_minimum;
inline constexpr Builder<Broadcast<"broadcast_hypot">> broadcast_hypot;
inline constexpr Builder<Broadcast<"broadcast_mod">> broadcast_mod;
inline constexpr Builder<Broadcast<"broadcast_logical_and">> broadcast_logical_and;
inline constexpr Builder<Broadcast<"broadcast_logical_or">> broadcast_logical_or;
inline constexpr Builder<Broadcast<"broadcast_logical_xor">> broadcast_logical_xor;

struct BroadcastTo {
  Tuple shape = {};  // 0: keep the extent
};
inline constexpr Builder<BroadcastTo> broadcast_to;

struct BroadcastAxis {
  Tuple axis = {};
  Tuple size = {};
};
inline constexpr Builder<BroadcastAxis> broadcast_axis;

struct BroadcastLike {
  TupleOrNone lhs_axes = {};
  TupleOrNone rhs_axes = {};
};
inline constexpr Builder<BroadcastLike> broadcast_like;

// For gradients: `data` summed over the axes along which `like` was broadcast to data's shape, and `data` broadcast to
// the shape of `like`. Only the shape of `like` is read; with equal shapes both return their input.
struct SumToLike {};
inline constexpr Builder<SumToLike> sum_to_like;
struct SpreadLike {};
inline constexpr Builder<SpreadLike> spread_like;

}  // namespace symbind
