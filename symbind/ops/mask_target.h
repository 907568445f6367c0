// The training targets of the mask branch of Mask R-CNN.
#pragma once

#include "symbind/graph/builder.h"

namespace SYMBIND_API symbind {

struct MaskTarget {
  Required<int64_t> num_rois = {};     // regions of an image
  Required<int64_t> num_classes = {};  // without the background
  Required<Tuple> mask_size = {};      // rows and columns of a target
  int64_t sample_ratio = 2;            // points of a cell along each axis; below 1: as many as it has pixels
  bool aligned = false;                // coordinates refer to pixel centres
};
inline constexpr Builder<MaskTarget> mask_target;

}  // namespace symbind
