// Strided slices of an array: extraction and assignment. begin, end and step are Python's, one per leading axis.
#pragma once

#include <array>

#include "symbind/graph/builder.h"

namespace SYMBIND_API symbind {

struct Slice {
  Required<OptionalTuple> begin = {};
  Required<OptionalTuple> end = {};
  OptionalTuple step = {};
};
inline constexpr Builder<Slice> slice;

// lhs with the slice replaced by rhs.
struct SliceAssign {
  Required<OptionalTuple> begin = {};
  Required<OptionalTuple> end = {};
  OptionalTuple step = {};
};
inline constexpr Builder<SliceAssign> slice_assign;

// data with the slice filled with a number.
struct SliceAssignScalar {
  double scalar = 0;
  Required<OptionalTuple> begin = {};
  Required<OptionalTuple> end = {};
  OptionalTuple step = {};
};
inline constexpr Builder<SliceAssignScalar> slice_assign_scalar;

// The gradient of slice: (out_grad, data) → zeros in data's shape with out_grad in the slice.
struct SliceGrad : Slice {};
inline constexpr Builder<SliceGrad> slice_grad;

struct SliceAxis {
  Required<int64_t> axis = {};
  Required<int64_t> begin = {};
  std::optional<int64_t> end = std::nullopt;  // none: to the end
};
inline constexpr Builder<SliceAxis> slice_axis;

struct SliceLike {
  Tuple axes = {};  // empty: all
};
inline constexpr Builder<SliceLike> slice_like;

// A window of the rows and columns of images, of size h_w or that of a second input.
struct Crop {
  Required<int64_t> num_args = {};
  Tuple offset = {0, 0};
  Tuple h_w = {0, 0};
  bool center_crop = false;
};
inline constexpr Builder<Crop> crop;

// (out_grad, the inputs for their shapes) → zeros in data's shape with out_grad in the slice
struct SliceAxisGrad : SliceAxis {};
inline constexpr Builder<SliceAxisGrad> slice_axis_grad;
struct SliceLikeGrad : SliceLike {};
inline constexpr Builder<SliceLikeGrad> slice_like_grad;
struct CropGrad : Crop {};
inline constexpr Builder<CropGrad> crop_grad;

// A slice of an array of known shape: element i of the result along an axis is element start + i·step of the array.
struct SliceRange {
  Shape shape;
  std::array<int64_t, Shape::max_rank> start{};
  std::array<int64_t, Shape::max_rank> step{};
};
SliceRange resolve_slice(const Shape& from, const OptionalTuple& begin, const OptionalTuple& end,
                         const OptionalTuple& step, std::string_view who);

SliceRange range_of(const SliceAxis& params, const Shape& data, std::string_view who);
SliceRange range_of(const SliceLike& params, const Shape& data, const Shape& like, std::string_view who);
SliceRange range_of(const Crop& params, const Shape& data, const Shape& output, std::string_view who);

}  // namespace symbind
