// Regular parts of an array, taken out and put in. begin, end and step are Python's, one per leading axis.
#pragma once

#include <array>

#include "symbind/graph/builder.h"

namespace symbind {

struct Slice {
  OptionalTuple begin = required;
  OptionalTuple end = required;
  OptionalTuple step = {};
};
inline constexpr Builder<Slice> slice;

// lhs with rhs in the place of the slice.
struct SliceAssign {
  OptionalTuple begin = required;
  OptionalTuple end = required;
  OptionalTuple step = {};
};
inline constexpr Builder<SliceAssign> slice_assign;

// data with a number in the place of the slice.
struct SliceAssignScalar {
  double scalar = 0;
  OptionalTuple begin = required;
  OptionalTuple end = required;
  OptionalTuple step = {};
};
inline constexpr Builder<SliceAssignScalar> slice_assign_scalar;

// The gradient of slice: (out_grad, data) → zeros in data's shape with out_grad in the place of the slice.
struct SliceGrad : Slice {};
inline constexpr Builder<SliceGrad> slice_grad;

// A slice of an array of known shape: element i of the result along an axis is element start + i·step of the array.
struct SliceRange {
  Shape shape;
  std::array<int64_t, Shape::max_rank> start{};
  std::array<int64_t, Shape::max_rank> step{};
};
SliceRange resolve_slice(const Shape& from, const OptionalTuple& begin, const OptionalTuple& end,
                         const OptionalTuple& step, std::string_view who);

void register_slice(OpRegistry& registry);

}  // namespace symbind
