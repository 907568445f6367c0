// Boxes: overlaps, non-maximum suppression, matching, and their encoding relative to anchors.
#pragma once

#include "symbind/graph/builder.h"

namespace SYMBIND_API symbind {

namespace box_format {
inline constexpr const char *center = "center", *corner = "corner";
inline constexpr const char* all[] = {center, corner};
}  // namespace box_format

struct BoxNMS {
  double overlap_thresh = 0.5;
  double valid_thresh = 0;
  int64_t topk = -1;
  int64_t coord_start = 2;
  int64_t score_index = 1;
  int64_t id_index = -1;
  int64_t background_id = -1;
  bool force_suppress = false;
  std::string in_format = "corner";
  std::string out_format = "corner";
};
inline constexpr Builder<BoxNMS> box_nms;

struct BoxIOU {
  std::string format = "corner";
};
inline constexpr Builder<BoxIOU> box_iou;

struct BipartiteMatching {
  bool is_ascend = false;
  Required<double> threshold = {};
  int64_t topk = -1;
};
inline constexpr Builder<BipartiteMatching> bipartite_matching;

struct BoxEncode {};
inline constexpr Builder<BoxEncode> box_encode;

struct BoxDecode {
  double std0 = 1;
  double std1 = 1;
  double std2 = 1;
  double std3 = 1;
  double clip = -1;
  std::string format = "center";
};
inline constexpr Builder<BoxDecode> box_decode;

// (out_grad, indices, data for its shape) → data_grad
struct BoxNMSGrad : BoxNMS {};
inline constexpr Builder<BoxNMSGrad> box_nms_grad;

}  // namespace symbind
