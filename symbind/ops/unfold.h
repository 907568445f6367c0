// The windows of a convolution as the columns of a matrix, and the inverse, which sums columns into an image.
#pragma once

#include <array>

#include "symbind/graph/builder.h"

namespace SYMBIND_API symbind {

// data (n, channels, spatial…) → (n, channels · kernel elements, windows)
struct Im2col {
  Required<Tuple> kernel = {};
  Tuple stride = {};
  Tuple dilate = {};
  Tuple pad = {};
};
inline constexpr Builder<Im2col> im2col;

// The transpose of im2col: data (n, channels · kernel elements, windows) → (n, channels, output_size…)
struct Col2im {
  Required<Tuple> output_size = {};
  Required<Tuple> kernel = {};
  Tuple stride = {};
  Tuple dilate = {};
  Tuple pad = {};
};
inline constexpr Builder<Col2im> col2im;

// (out_grad, data for its shape) → data_grad
struct Im2colGrad : Im2col {};
inline constexpr Builder<Im2colGrad> im2col_grad;

// The extents as numbers, always with three spatial axes (missing ones are first and have extent 1).
struct UnfoldSize {
  int64_t planes;  // batch · channels
  std::array<int64_t, 3> image{1, 1, 1}, windows{1, 1, 1}, kernel{1, 1, 1}, stride{1, 1, 1}, dilate{1, 1, 1},
      pad{0, 0, 0};
};
UnfoldSize unfold_size(const Im2col& params, const Shape& image);
UnfoldSize unfold_size(const Col2im& params, const Shape& image);

}  // namespace symbind
