// Single-shot detection: anchors, the matching of anchors and objects, and detections: the work per anchor. Compiled
// for every device.
#pragma once

#include "symbind/backend/boxes.h"
#include "symbind/core/shape.h"
#include "symbind/ops/multibox.h"

namespace symbind::boxes {

inline float as_float(double value) { return static_cast<float>(value); }

// ---- MultiBoxPrior --------------------------------------------------------------------------------------------------

// The positions of anchors.
template <class C>
struct PriorRule {
  int64_t columns, anchors;  // anchors: in each position
  C step_y, step_x, offset_y, offset_x;
  bool clip;

  PriorRule(const MultiBoxPrior& p, const Shape& data)
      : columns(data[3]),
        anchors(static_cast<int64_t>(p.sizes.size() + p.ratios.size()) - 1),
        step_y(p.steps[0] > 0 ? as_float(p.steps[0]) : C(1) / static_cast<C>(data[2])),
        step_x(p.steps[1] > 0 ? as_float(p.steps[1]) : C(1) / static_cast<C>(data[3])),
        offset_y(as_float(p.offsets[0])),
        offset_x(as_float(p.offsets[1])),
        clip(p.clip) {}

  // `half` has half the width and half the height of the anchor.
  constexpr Box<C> at(int64_t position, C half_width, C half_height) const {
    const C x = (static_cast<C>(position % columns) + offset_x) * step_x;
    const C y = (static_cast<C>(position / columns) + offset_y) * step_y;
    const Box<C> box{x - half_width, y - half_height, x + half_width, y + half_height};
    if (!clip) return box;
    return {clipped(box.x1, C(0), C(1)), clipped(box.y1, C(0), C(1)), clipped(box.x2, C(0), C(1)),
            clipped(box.y2, C(0), C(1))};
  }
};

// Half of the width and of the height of each anchor of a position.
template <class C>
struct HalfSize {
  C width, height;
};
template <class C, class Add>
void for_prior_sizes(const MultiBoxPrior& p, const Shape& data, const Add& add) {
  const C aspect = static_cast<C>(data[2]) / static_cast<C>(data[3]);
  const auto half_size = [=](double size, double ratio) {
    const C root = libm::sqrt(static_cast<C>(as_float(ratio))), s = static_cast<C>(as_float(size));
    return HalfSize<C>{s * aspect * root / C(2), s / root / C(2)};
  };
  for (const double size : p.sizes) add(half_size(size, p.ratios[0]));
  for (size_t i = 1; i < p.ratios.size(); ++i) add(half_size(p.sizes[0], p.ratios[i]));
}

// ---- MultiBoxTarget -------------------------------------------------------------------------------------------------

// An anchor and how much it overlaps an object; no anchor: -1.
template <class C>
struct BestAnchor {
  C overlap;
  int64_t anchor;

  // Of equal overlaps the first anchor is better.
  constexpr bool is_better_than(const BestAnchor& other) const {
    return other.anchor < 0 || overlap > other.overlap || (overlap == other.overlap && anchor < other.anchor);
  }
};

template <class C>
struct TargetRule {
  int64_t images, anchors, objects, label_width, classes;
  C overlap_threshold, ignore_label, mining_ratio, mining_threshold;
  C variances[4];
  int64_t least_negatives;

  TargetRule(const MultiBoxTarget& p, const Shape& anchor, const Shape& label, const Shape& cls_pred)
      : images(label[0]),
        anchors(anchor[1]),
        objects(label[1]),
        label_width(label[2]),
        classes(cls_pred[1]),
        overlap_threshold(as_float(p.overlap_threshold)),
        ignore_label(as_float(p.ignore_label)),
        mining_ratio(as_float(p.negative_mining_ratio)),
        mining_threshold(as_float(p.negative_mining_thresh)),
        least_negatives(p.minimum_negative_samples) {
    for (size_t i = 0; i < 4; ++i) variances[i] = as_float(p.variances[i]);
  }

  static constexpr C least_overlap = C(1e-6);  // of an object with its anchor
  constexpr bool mines() const { return mining_ratio > C(0); }
  constexpr int64_t negatives(int64_t positives) const {
    const auto wanted = static_cast<int64_t>(static_cast<C>(positives) * mining_ratio);
    const int64_t most = wanted > least_negatives ? wanted : least_negatives;
    return most < anchors - positives ? most : anchors - positives;
  }
  // Those before the first without a class. read(index) is an element of the image's labels.
  template <class Read>
  constexpr int64_t objects_of(const Read& read) const {
    int64_t count = 0;
    while (count < objects && read(count * label_width) != C(-1)) ++count;
    return count;
  }
  template <class Read>
  constexpr Box<C> object(const Read& read, int64_t index) const {
    const int64_t at = index * label_width;
    return {read(at + 1), read(at + 2), read(at + 3), read(at + 4)};
  }
  // The probability of the background; read(class) is the prediction of one.
  template <class Read>
  constexpr C background(const Read& read) const {
    C most = read(0), sum = 0;
    for (int64_t i = 1; i < classes; ++i) most = read(i) > most ? read(i) : most;
    for (int64_t i = 0; i < classes; ++i) sum += libm::exp(read(i) - most);
    return libm::exp(read(0) - most) / sum;
  }
};

// Intersection over union of an anchor and an object, or of two detections. Does not check for corners in the wrong
// order.
template <class C>
constexpr C fractional_overlap(const Box<C>& a, const Box<C>& b) {
  const C shared = shared_area(a, b);
  const C all = (a.x2 - a.x1) * (a.y2 - a.y1) + (b.x2 - b.x1) * (b.y2 - b.y1) - shared;
  return all > C(0) ? shared / all : C(0);
}

// ---- MultiBoxDetection ----------------------------------------------------------------------------------------------

template <class C>
struct Detection {
  C id, score;
  Box<C> box;
};

template <class C>
struct DetectionRule {
  int64_t images, classes, anchors;
  C threshold, nms_threshold;
  C variances[4];
  int64_t most;  // that enter non-maximum suppression
  bool clip, any_class;

  DetectionRule(const MultiBoxDetection& p, const Shape& cls_prob)
      : images(cls_prob[0]),
        classes(cls_prob[1]),
        anchors(cls_prob[2]),
        threshold(as_float(p.threshold)),
        nms_threshold(as_float(p.nms_threshold)),
        most(p.nms_topk > 0 && p.nms_topk < anchors ? p.nms_topk : anchors),
        clip(p.clip),
        any_class(p.force_suppress) {
    for (size_t i = 0; i < 4; ++i) variances[i] = as_float(p.variances[i]);
  }

  constexpr bool suppresses() const { return nms_threshold > C(0) && nms_threshold <= C(1); }
  constexpr bool drops(const Detection<C>& a, const Detection<C>& b) const {
    return (any_class || a.id == b.id) && fractional_overlap(a.box, b.box) >= nms_threshold;
  }

  // The best class other than the background, -1 if its probability is too low. read(class) is a probability.
  template <class Read>
  constexpr Detection<C> best_class(const Read& read) const {
    Detection<C> best{C(-1), C(-1), {C(0), C(0), C(0), C(0)}};
    for (int64_t i = 1; i < classes; ++i) {
      const C score = read(i);
      if (score > best.score) {
        best.score = score;
        best.id = static_cast<C>(i - 1);
      }
    }
    if (!(best.score >= threshold)) best.id = C(-1);
    return best;
  }
  constexpr Box<C> located(const Box<C>& anchor, C x, C y, C width, C height) const {
    const Box<C> box = decode(center_of_corners(anchor),
                              Code<C>{x * variances[0], y * variances[1], width * variances[2], height * variances[3]});
    if (!clip) return box;
    return {clipped(box.x1, C(0), C(1)), clipped(box.y1, C(0), C(1)), clipped(box.x2, C(0), C(1)),
            clipped(box.y2, C(0), C(1))};
  }
};

}  // namespace symbind::boxes
