// Single-shot detection: anchors, their training targets, and detections.
#pragma once

#include "symbind/graph/builder.h"

namespace SYMBIND_API symbind {

struct MultiBoxPrior {
  std::vector<double> sizes = {1};   // of anchors, as a fraction of the image
  std::vector<double> ratios = {1};  // width by height
  bool clip = false;
  std::vector<double> steps = {-1, -1};      // between anchors, down and across; -1: so that they cover the image
  std::vector<double> offsets = {0.5, 0.5};  // of the first anchor in steps, down and across
};
inline constexpr Builder<MultiBoxPrior> multi_box_prior;

struct MultiBoxTarget {
  double overlap_threshold = 0.5;
  double ignore_label = -1;
  double negative_mining_ratio = -1;  // -1: every anchor without an object is a negative
  double negative_mining_thresh = 0.5;
  int64_t minimum_negative_samples = 0;
  std::vector<double> variances = {0.1, 0.1, 0.2, 0.2};
};
inline constexpr Builder<MultiBoxTarget> multi_box_target;

struct MultiBoxDetection {
  bool clip = true;
  double threshold = 0.01;
  int64_t background_id = 0;
  double nms_threshold = 0.5;
  bool force_suppress = false;
  std::vector<double> variances = {0.1, 0.1, 0.2, 0.2};
  int64_t nms_topk = -1;
};
inline constexpr Builder<MultiBoxDetection> multi_box_detection;

}  // namespace symbind
