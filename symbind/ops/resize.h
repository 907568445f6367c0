// Resizing of images: by bilinear interpolation, or by adaptive average pooling.
#pragma once

#include "symbind/graph/builder.h"

namespace SYMBIND_API symbind {

// mode selects how the size is computed; with mode "like" it is that of a second input.
struct BilinearResize2D {
  int64_t height = 1;
  int64_t width = 1;
  std::optional<double> scale_height = {};
  std::optional<double> scale_width = {};
  std::string mode = "size";
  bool align_corners = true;
};
inline constexpr Builder<BilinearResize2D> bilinear_resize_2d;

struct AdaptiveAvgPooling2D {
  Tuple output_size = {};  // (), (n) or (rows, columns)
};
inline constexpr Builder<AdaptiveAvgPooling2D> adaptive_avg_pooling_2d;

// (out_grad, data for its shape) → data_grad
struct BilinearResize2DGrad {
  bool align_corners = true;
};
inline constexpr Builder<BilinearResize2DGrad> bilinear_resize_2d_grad;
struct AdaptiveAvgPooling2DGrad : AdaptiveAvgPooling2D {};
inline constexpr Builder<AdaptiveAvgPooling2DGrad> adaptive_avg_pooling_2d_grad;

}  // namespace symbind
