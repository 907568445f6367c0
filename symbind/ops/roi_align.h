// Regions of images, interpolated to a fixed size without rounding, unlike ROIPooling.
#pragma once

#include "symbind/graph/builder.h"

namespace SYMBIND_API symbind {

struct ROIAlign {
  Required<Tuple> pooled_size = {};     // rows and columns of the result
  Required<double> spatial_scale = {};  // from the coordinates of regions to those of data
  int64_t sample_ratio = -1;            // points of a cell along each axis; below 1: as many as it has pixels
  bool position_sensitive = false;      // each cell reads its own channels
  bool aligned = false;                 // coordinates refer to pixel centres
};
inline constexpr Builder<ROIAlign> roi_align;

// ROIAlign of rotated regions.
struct RROIAlign {
  Required<Tuple> pooled_size = {};
  Required<double> spatial_scale = {};
  int64_t sampling_ratio = -1;
};
inline constexpr Builder<RROIAlign> rroi_align;

// (out_grad, rois, data for its shape) → data_grad
struct ROIAlignGrad : ROIAlign {};
inline constexpr Builder<ROIAlignGrad> roi_align_grad;

}  // namespace symbind
