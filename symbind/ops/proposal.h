// Region proposals: the boxes of a region proposal network, decoded from anchors and filtered by non-maximum
// suppression.
#pragma once

#include "symbind/graph/builder.h"

namespace SYMBIND_API symbind {

// Of one image. The anchors are one per scale and ratio in every position of the feature map.
struct Proposal {
  int64_t rpn_pre_nms_top_n = 6000;  // boxes that enter non-maximum suppression; below 1: all
  int64_t rpn_post_nms_top_n = 300;  // rows of the output per image
  double threshold = 0.7;            // overlap above which the box of the lower score is dropped
  int64_t rpn_min_size = 16;         // in pixels of the unscaled image
  std::vector<double> scales = {4, 8, 16, 32};
  std::vector<double> ratios = {0.5, 1, 2};
  int64_t feature_stride = 16;
  bool output_score = false;
  bool iou_loss = false;  // bbox_pred are offsets of the corners, in pixels
};
inline constexpr Builder<Proposal> proposal;

// Of a batch of images.
struct MultiProposal : Proposal {};
inline constexpr Builder<MultiProposal> multi_proposal;

}  // namespace symbind
