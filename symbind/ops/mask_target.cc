#include "symbind/ops/mask_target.h"

#include "symbind/graph/define.h"
#include "symbind/ops/floating.h"

namespace symbind {
namespace {

constexpr int64_t most_samples = 1 << 10;

OpDef define(Op<MaskTarget> op) {
  return op
      .doc(
          "Targets of Mask R-CNN's masks: the part of each region's ground truth mask that is inside the region, at "
          "mask_size as ROIAlign reads it. rois is (n, num_rois, 4) with corners x1, y1, x2, y2 in pixels, gt_masks "
          "(n, masks, rows, columns), matches (n, num_rois) the mask of each region, cls_targets (n, num_rois) its "
          "class from 0, without the background. Both outputs are (n, num_rois, num_classes, mask_size): mask_targets, "
          "the same for every class, and mask_cls, 1 for the region's class and 0 for the others. A match out of range "
          "gives zeros. There are no gradients.")
      .precision(Precision::full)
      .param(&MaskTarget::num_rois, "num_rois", "number of regions of an image", at_least(1))
      .param(&MaskTarget::num_classes, "num_classes", "number of classes without the background", at_least(1))
      .param(&MaskTarget::mask_size, "mask_size", "rows and columns of a target", each_at_least(1))
      .param(&MaskTarget::sample_ratio, "sample_ratio",
             "number of points along each axis of a cell whose mean is taken; 0 or less: as many as the cell has "
             "pixels, rounded up",
             between(-most_samples, most_samples))
      .param(&MaskTarget::aligned, "aligned",
             "coordinates are those of the centres of pixels, and regions may be smaller than a pixel")
      .check([](MaskTarget& p) {
        require(p.mask_size.size() == 2 && p.mask_size[0] <= 1 << 16 && p.mask_size[1] <= 1 << 16,
                "mask_size must have 2 numbers of at most 65536: ", print(p.mask_size));
      })
      .inputs({"rois", "gt_masks", "matches", "cls_targets"})
      .outputs({"mask_targets", "mask_cls"})
      .infer_shape([](const MaskTarget& p, Shapes& s) {
        auto rois = s["rois"], masks = s["gt_masks"];
        rois.meet({unknown_dim, p.num_rois, 4});
        masks.meet(Shape::of_rank(4));
        s["matches"].meet({rois[0], p.num_rois});
        s["cls_targets"].meet({rois[0], p.num_rois});
        rois.meet_dim(0, s["matches"][0]);
        rois.meet_dim(0, masks[0]);
        masks.meet_dim(0, rois[0]);
        for (size_t i = 0; i < 2; ++i)
          s.output(i).meet({rois[0], p.num_rois, p.num_classes, p.mask_size[0], p.mask_size[1]});
      })
      .infer_type([](const MaskTarget&, Types& t) { same_floating_type(t); })
      .gradient([](const MaskTarget&, Grad&) {});
}

}  // namespace

void register_mask_target(OpRegistry& registry) { add<MaskTarget>(registry, "_contrib_mrcnn_mask_target", define); }

}  // namespace symbind
