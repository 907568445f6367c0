// Region proposals: the boxes computed from anchors and predictions. Compiled for every device; sorting and non-maximum
// suppression are implemented per device.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "symbind/backend/boxes.h"
#include "symbind/core/shape.h"
#include "symbind/ops/proposal.h"

namespace symbind::boxes {

// Anchors around the first position, grouped by ratio: rounded to whole pixels before they are scaled.
template <class C>
std::vector<Box<C>> base_anchors(const Proposal& p) {
  std::vector<Box<C>> anchors;
  const auto stride = static_cast<C>(p.feature_stride), center = (stride - 1) / 2;
  for (const double ratio : p.ratios)
    for (const double scale : p.scales) {
      const auto r = static_cast<C>(static_cast<float>(ratio)), s = static_cast<C>(static_cast<float>(scale));
      const C width = std::floor(std::sqrt(std::floor(stride * stride / r)) + C(0.5));
      const C height = std::floor(width * r + C(0.5));
      const C across = (width * s - 1) / 2, down = (height * s - 1) / 2;
      anchors.push_back({center - across, center - down, center + across, center + down});
    }
  return anchors;
}

struct ProposalSize {
  int64_t images, anchors, rows, columns;
  int64_t boxes;     // of an image
  int64_t searched;  // of these, in the order of their scores
  int64_t wanted;    // rows of the output per image

  ProposalSize(const Proposal& p, const Shape& cls_prob)
      : images(cls_prob[0]),
        anchors(cls_prob[1] / 2),
        rows(cls_prob[2]),
        columns(cls_prob[3]),
        boxes(anchors * rows * columns),
        searched(p.rpn_pre_nms_top_n > 0 ? std::min(p.rpn_pre_nms_top_n, boxes) : boxes),
        wanted(p.rpn_post_nms_top_n) {}
};

template <class C>
struct Scored {
  Box<C> box;
  C score;
};

template <class C>
struct ProposalRule {
  int64_t anchors, rows, columns;
  C stride, min_size;
  bool iou_loss;

  ProposalRule(const Proposal& p, const ProposalSize& size)
      : anchors(size.anchors),
        rows(size.rows),
        columns(size.columns),
        stride(static_cast<C>(p.feature_stride)),
        min_size(static_cast<C>(p.rpn_min_size)),
        iou_loss(p.iou_loss) {}

  // The box of an anchor moved by (dx, dy) and scaled by (e^dw, e^dh), or of corners moved by four offsets.
  constexpr Box<C> moved(const Box<C>& anchor, C d0, C d1, C d2, C d3) const {
    if (iou_loss) return {anchor.x1 + d0, anchor.y1 + d1, anchor.x2 + d2, anchor.y2 + d3};
    const C width = anchor.x2 - anchor.x1 + C(1), height = anchor.y2 - anchor.y1 + C(1);
    const C x = d0 * width + (anchor.x1 + (width - C(1)) / C(2));
    const C y = d1 * height + (anchor.y1 + (height - C(1)) / C(2));
    const C across = (libm::exp(d2) * width - C(1)) / C(2), down = (libm::exp(d3) * height - C(1)) / C(2);
    return {x - across, y - down, x + across, y + down};
  }

  // Box `index` = (row · columns + column) · anchors + anchor of an image. read_score(offset) and read_delta(offset)
  // are elements of the image's cls_prob and bbox_pred, info(0 … 2) its height, width and scale.
  template <class Score, class Delta, class Info>
  constexpr Scored<C> at(int64_t index, const Box<C>& base, const Score& read_score, const Delta& read_delta,
                         const Info& info) const {
    const int64_t anchor = index % anchors, column = index / anchors % columns, row = index / anchors / columns;
    const int64_t space = rows * columns, position = row * columns + column;
    const C right = static_cast<C>(column) * stride, below = static_cast<C>(row) * stride;
    const int64_t first = 4 * anchor * space + position;
    const Box<C> box = moved({base.x1 + right, base.y1 + below, base.x2 + right, base.y2 + below}, read_delta(first),
                             read_delta(first + space), read_delta(first + 2 * space), read_delta(first + 3 * space));
    const C height = info(0), width = info(1), least = min_size * info(2);
    Scored<C> result{{clipped(box.x1, C(0), width - C(1)), clipped(box.y1, C(0), height - C(1)),
                      clipped(box.x2, C(0), width - C(1)), clipped(box.y2, C(0), height - C(1))},
                     read_score((anchors + anchor) * space + position)};
    // Positions outside of the image, which was padded.
    if (static_cast<C>(row) >= libm::trunc(height / stride) || static_cast<C>(column) >= libm::trunc(width / stride))
      result.score = C(-1);
    Box<C>& clip = result.box;
    if (clip.x2 - clip.x1 + C(1) < least || clip.y2 - clip.y1 + C(1) < least) {
      clip = {clip.x1 - least / C(2), clip.y1 - least / C(2), clip.x2 + least / C(2), clip.y2 + least / C(2)};
      result.score = C(-1);
    }
    return result;
  }
};

}  // namespace symbind::boxes
