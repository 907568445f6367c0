#include "symbind/ops/proposal.h"

#include <algorithm>
#include <limits>

#include "symbind/graph/define.h"
#include "symbind/ops/extents.h"
#include "symbind/ops/floating.h"

namespace symbind {
namespace {

constexpr int64_t most_boxes = std::numeric_limits<int32_t>::max();

void require_positive(const std::vector<double>& values, const char* name) {
  const auto is_positive = [](double value) { return value > 0 && value <= std::numeric_limits<float>::max(); };
  require(!values.empty() && std::all_of(values.begin(), values.end(), is_positive), name,
          " must be one or more positive numbers: ", print(values));
}

template <class P>
Op<P>& with_fields(Op<P>& op) {
  return op
      .param(&Proposal::rpn_pre_nms_top_n, "rpn_pre_nms_top_n",
             "number of boxes with the highest scores that enter non-maximum suppression; below 1: all",
             between(-most_boxes, most_boxes))
      .param(&Proposal::rpn_post_nms_top_n, "rpn_post_nms_top_n",
             "number of rows of the output for each image; where fewer boxes are left, they are repeated",
             between(0, most_boxes))
      .param(&Proposal::threshold, "threshold",
             "intersection over union above which the box of the lower score is dropped")
      .param(&Proposal::rpn_min_size, "rpn_min_size",
             "least width and height of a box, in pixels of the image before it was scaled; smaller boxes have the "
             "score -1",
             between(-most_boxes, most_boxes))
      .param(&Proposal::scales, "scales", "sizes of the anchors, in units of feature_stride")
      .param(&Proposal::ratios, "ratios", "ratios of height to width of the anchors")
      .param(&Proposal::feature_stride, "feature_stride",
             "pixels of the image from one position of the feature map to the next", between(1, 1 << 20))
      .param(&Proposal::output_score, "output_score", "return the scores of the boxes as well")
      .param(&Proposal::iou_loss, "iou_loss",
             "bbox_pred are offsets of the four corners in pixels; False: offsets of the centre relative to the "
             "anchor, and logarithms of the ratios of the sizes")
      .check([](P& p) {
        require_positive(p.scales, "scales");
        require_positive(p.ratios, "ratios");
      });
}

int64_t anchors_of(const Proposal& p) { return static_cast<int64_t>(p.scales.size() * p.ratios.size()); }

// `batch` is what is known about the number of images.
void infer(const Proposal& p, Shapes& s, int64_t batch) {
  auto cls_prob = s["cls_prob"], bbox_pred = s["bbox_pred"], im_info = s["im_info"];
  const int64_t anchors = anchors_of(p);
  cls_prob.meet({batch, 2 * anchors, unknown_dim, unknown_dim});
  bbox_pred.meet({cls_prob[0], 4 * anchors, cls_prob[2], cls_prob[3]});
  cls_prob.meet({bbox_pred[0], 2 * anchors, bbox_pred[2], bbox_pred[3]});
  im_info.meet({cls_prob[0], 3});
  cls_prob.meet_dim(0, im_info[0]);
  if (bbox_pred.known())
    require(bbox_pred.get().size() <= most_boxes, s.where(), " too many boxes: bbox_pred ", bbox_pred.get());
  const int64_t rows = extent_product(cls_prob[0], p.rpn_post_nms_top_n, s.where());
  s.output(0).meet({rows, 5});
  s.output(1).meet({rows, 1});
}

template <class P>
Op<P>& with_outputs(Op<P>& op) {
  return with_fields(op)
      .inputs({"cls_prob", "bbox_pred", "im_info"})
      .outputs({"output", "score"})
      .visible_outputs([](const P& p) { return p.output_score ? 2 : 1; })
      .infer_type([](const P&, Types& t) { same_floating_type(t); })
      .gradient([](const P&, Grad&) {});
}

constexpr const char* description =
    "cls_prob is (n, 2 · anchors, rows, columns), the probabilities of background and then of an object; bbox_pred is "
    "(n, 4 · anchors, rows, columns), im_info (n, 3) with rows (height, width, scale). The anchors are one per ratio "
    "and scale, the scales of a ratio together. Boxes are clipped to the image, sorted by score, and thinned out by "
    "non-maximum suppression. The output is (n · rpn_post_nms_top_n, 5) with rows (image index, x1, y1, x2, y2), and "
    "the scores (n · rpn_post_nms_top_n, 1). The gradients are zero.";

OpDef define(Op<Proposal> op) {
  return with_outputs(op)
      .doc(join("Region proposals of one image, for n = 1: ", description))
      .precision(Precision::full)
      .infer_shape([](const Proposal& p, Shapes& s) { infer(p, s, 1); });
}

OpDef define(Op<MultiProposal> op) {
  return with_outputs(op)
      .doc(join("Region proposals of a batch of images: ", description))
      .precision(Precision::full)
      .infer_shape([](const MultiProposal& p, Shapes& s) { infer(p, s, unknown_dim); });
}

}  // namespace

void register_proposal(OpRegistry& registry) {
  add<Proposal>(registry, "_contrib_Proposal", define);
  add<MultiProposal>(registry, "_contrib_MultiProposal", define);
}

}  // namespace symbind
