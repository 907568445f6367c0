// Max pooling of regions of images, for detectors.
#pragma once

#include "symbind/graph/builder.h"

namespace SYMBIND_API symbind {

struct ROIPooling {
  Required<Tuple> pooled_size = {};     // rows and columns of the result
  Required<double> spatial_scale = {};  // from the coordinates of regions to those of data
};
inline constexpr Builder<ROIPooling> roi_pooling;

// (out_grad, max_idx, rois, data for its shape) → data_grad
struct ROIPoolingGrad : ROIPooling {};
inline constexpr Builder<ROIPoolingGrad> roi_pooling_grad;

}  // namespace symbind
