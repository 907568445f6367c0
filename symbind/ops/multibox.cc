#include "symbind/ops/multibox.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "symbind/graph/define.h"
#include "symbind/ops/extents.h"
#include "symbind/ops/floating.h"

namespace symbind {
namespace {

constexpr int64_t most_boxes = std::numeric_limits<int32_t>::max() / 8;

void require_numbers(const std::vector<double>& values, size_t count, const char* name) {
  require(values.size() == count, name, " must be ", count, " numbers: ", print(values));
  if (!std::ranges::all_of(values, [](double value) { return std::isfinite(value); }))
    fail(name, " must be finite: ", print(values));
}

void require_few(Shapes& s, const Inferred<Shape>& anchor) {
  require(!anchor.known() || anchor[1] <= most_boxes, s.where(), " too many boxes: anchor ", anchor.get());
}

// ---- MultiBoxPrior --------------------------------------------------------------------------------------------------

OpDef define(Op<MultiBoxPrior> op) {
  return op
      .doc(
          "Anchors of a feature map, as fractions of the image. data is (n, channels, rows, columns), of which only "
          "the shape is read; the output is (1, rows · columns · (sizes + ratios - 1), 4) with rows (x1, y1, x2, y2): "
          "in each position an anchor of each size with the first ratio, then one of the first size with each other "
          "ratio. The gradient is zero.")
      .precision(Precision::full)
      .param(&MultiBoxPrior::sizes, "sizes", "heights of the anchors as fractions of the image's")
      .param(&MultiBoxPrior::ratios, "ratios", "ratios of width to height of the anchors")
      .param(&MultiBoxPrior::clip, "clip", "clip the anchors to the image")
      .param(&MultiBoxPrior::steps, "steps",
             "distances between the anchors, down and across; -1: so that they are spread over the image")
      .param(&MultiBoxPrior::offsets, "offsets", "positions of the first anchor in steps, down and across")
      .check([](MultiBoxPrior& p) {
        require(!p.sizes.empty() && !p.ratios.empty(), "sizes and ratios must not be empty");
        require_numbers(p.sizes, p.sizes.size(), "sizes");
        require_numbers(p.ratios, p.ratios.size(), "ratios");
        if (!std::ranges::all_of(p.ratios, [](double ratio) { return ratio > 0; }))
          fail("ratios must be positive: ", print(p.ratios));
        require_numbers(p.steps, 2, "steps");
        require(p.steps[0] * p.steps[1] >= 0, "steps must both be positive, or both -1: ", print(p.steps));
        require_numbers(p.offsets, 2, "offsets");
      })
      .shape_only({"data"})
      .infer_shape([](const MultiBoxPrior& p, Shapes& s) {
        auto data = s["data"];
        data.meet(Shape::of_rank(4));
        const auto anchors = static_cast<int64_t>(p.sizes.size() + p.ratios.size() - 1);
        const int64_t positions = extent_product(data[2], data[3], s.where());
        s.output().meet({1, extent_product(positions, anchors, s.where()), 4});
      })
      .infer_type([](const MultiBoxPrior&, Types& t) { same_floating_type(t); })
      .gradient([](const MultiBoxPrior&, Grad&) {});
}

// ---- MultiBoxTarget -------------------------------------------------------------------------------------------------

OpDef define(Op<MultiBoxTarget> op) {
  return op
      .doc(
          "Training targets of anchors. anchor is (1, anchors, 4), label (n, objects, 5 or more) with rows (class, x1, "
          "y1, x2, y2, …), of which those from the first class of -1 on are padding; cls_pred is (n, classes + 1, "
          "anchors), class 0 the background. Each object takes the anchor with the largest overlap; then each other "
          "anchor the object with which it overlaps most, if by more than overlap_threshold. The outputs are "
          "loc_target (n, 4 · anchors), the encoded boxes of the objects; loc_mask of the same shape, 1 for anchors "
          "with an object; and cls_target (n, anchors), the class plus 1, 0 for the background, ignore_label for "
          "anchors that do not count. The gradients are zero.")
      .precision(Precision::full)
      .param(&MultiBoxTarget::overlap_threshold, "overlap_threshold",
             "intersection over union above which an anchor takes an object; 0 or less: each object has one anchor")
      .param(&MultiBoxTarget::ignore_label, "ignore_label", "cls_target of anchors that do not count")
      .param(&MultiBoxTarget::negative_mining_ratio, "negative_mining_ratio",
             "number of negatives per positive: those whose background is least probable; 0 or less: all are negatives")
      .param(&MultiBoxTarget::negative_mining_thresh, "negative_mining_thresh",
             "an anchor that overlaps an object by this much or more is no candidate for a negative")
      .param(&MultiBoxTarget::minimum_negative_samples, "minimum_negative_samples",
             "least number of negatives; below 0: 0", between(-most_boxes, most_boxes))
      .param(&MultiBoxTarget::variances, "variances", "divisors of the encoded boxes: of x, y, width and height")
      .check([](MultiBoxTarget& p) {
        require_numbers(p.variances, 4, "variances");
        for (const double value : p.variances) require(value != 0, "variances must not be 0: ", print(p.variances));
      })
      .inputs({"anchor", "label", "cls_pred"})
      .outputs({"loc_target", "loc_mask", "cls_target"})
      .infer_shape([](const MultiBoxTarget&, Shapes& s) {
        auto anchor = s["anchor"], label = s["label"], cls_pred = s["cls_pred"];
        anchor.meet({1, unknown_dim, 4});
        label.meet(Shape::of_rank(3));
        cls_pred.meet({label[0], unknown_dim, anchor[1]});
        anchor.meet_dim(1, cls_pred[2]);
        label.meet_dim(0, cls_pred[0]);
        require_few(s, anchor);
        require(label[2] == unknown_dim || label[2] >= 5, s.where(), " label needs 5 or more columns: label ",
                label.get());
        require(cls_pred[1] == unknown_dim || cls_pred[1] >= 1, s.where(), " cls_pred has no classes: cls_pred ",
                cls_pred.get());
        const int64_t numbers = extent_product(4, anchor[1], s.where());
        s.output(0).meet({label[0], numbers});
        s.output(1).meet({label[0], numbers});
        s.output(2).meet({label[0], anchor[1]});
      })
      .infer_type([](const MultiBoxTarget&, Types& t) { same_floating_type(t); })
      .gradient([](const MultiBoxTarget&, Grad&) {});
}

// ---- MultiBoxDetection ----------------------------------------------------------------------------------------------

OpDef define(Op<MultiBoxDetection> op) {
  return op
      .doc(
          "Detections from predictions. cls_prob is (n, classes + 1, anchors), loc_pred (n, 4 · anchors), anchor (1, "
          "anchors, 4). Each anchor has the class other than the background with the highest probability; boxes are "
          "decoded, sorted by probability, and thinned out by non-maximum suppression. The output is (n, anchors, 6) "
          "with rows (class, probability, x1, y1, x2, y2), where classes count without the background and the class -1 "
          "marks what was dropped. The gradients are zero.")
      .precision(Precision::full)
      .param(&MultiBoxDetection::clip, "clip", "clip the boxes to the image")
      .param(&MultiBoxDetection::threshold, "threshold", "probability from which an anchor is a detection")
      .param(&MultiBoxDetection::background_id, "background_id",
             "class of the background; only 0 is supported, and other values are taken for 0")
      .param(&MultiBoxDetection::nms_threshold, "nms_threshold",
             "intersection over union from which the detection of the lower probability is dropped; 0 or less, or "
             "above 1: none are dropped")
      .param(&MultiBoxDetection::force_suppress, "force_suppress", "detections of other classes drop each other too")
      .param(&MultiBoxDetection::variances, "variances", "factors of the encoded boxes: of x, y, width and height")
      .param(&MultiBoxDetection::nms_topk, "nms_topk",
             "number of detections with the highest probabilities that are kept before non-maximum suppression; 0 or "
             "less: all")
      .check([](MultiBoxDetection& p) { require_numbers(p.variances, 4, "variances"); })
      .inputs({"cls_prob", "loc_pred", "anchor"})
      .infer_shape([](const MultiBoxDetection&, Shapes& s) {
        auto cls_prob = s["cls_prob"], loc_pred = s["loc_pred"], anchor = s["anchor"];
        cls_prob.meet(Shape::of_rank(3));
        anchor.meet({1, cls_prob[2], 4});
        loc_pred.meet({cls_prob[0], extent_product(4, anchor[1], s.where())});
        const int64_t anchors = loc_pred[1] == unknown_dim ? anchor[1] : loc_pred[1] / 4;
        anchor.meet_dim(1, anchors);
        cls_prob.meet({loc_pred[0], unknown_dim, anchors});
        require_few(s, anchor);
        require(loc_pred[1] == unknown_dim || loc_pred[1] % 4 == 0, s.where(),
                " loc_pred needs four numbers per anchor: loc_pred ", loc_pred.get());
        require(cls_prob[1] == unknown_dim || cls_prob[1] >= 1, s.where(), " cls_prob has no classes: cls_prob ",
                cls_prob.get());
        s.output().meet({cls_prob[0], anchors, 6});
      })
      .infer_type([](const MultiBoxDetection&, Types& t) { same_floating_type(t); })
      .gradient([](const MultiBoxDetection&, Grad&) {});
}

}  // namespace

void register_multibox(OpRegistry& registry) {
  add<MultiBoxPrior>(registry, "_contrib_MultiBoxPrior", define);
  add<MultiBoxTarget>(registry, "_contrib_MultiBoxTarget", define);
  add<MultiBoxDetection>(registry, "_contrib_MultiBoxDetection", define);
}

}  // namespace symbind
