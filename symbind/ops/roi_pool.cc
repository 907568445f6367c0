#include "symbind/ops/roi_pool.h"

#include <limits>

#include "symbind/graph/define.h"
#include "symbind/ops/extents.h"
#include "symbind/ops/floating.h"

namespace symbind {
namespace {

template <class P>
Op<P>& with_fields(Op<P>& op) {
  return op
      .param(&ROIPooling::pooled_size, "pooled_size", "rows and columns every region is pooled to", each_at_least(1))
      .param(&ROIPooling::spatial_scale, "spatial_scale", "an extent of data over that of the image regions speak of",
             between(0, 1))
      .check(
          [](P& p) { require(p.pooled_size.size() == 2, "pooled_size must have 2 numbers: ", print(p.pooled_size)); });
}

OpDef define(Op<ROIPooling> op) {
  return with_fields(op)
      .doc(
          "Regions of images, each cut into a grid of cells, and the largest element of each cell. A region is (image, "
          "x1, y1, x2, y2), corners included; one of an image that is not there gives zeros.")
      .inputs({"data", "rois"})
      .outputs({"output", "max_idx"})
      .visible_outputs([](const ROIPooling&) { return 1; })
      .infer_shape([](const ROIPooling& p, Shapes& s) {
        const auto data = s["data"], rois = s["rois"];
        s["data"].meet(Shape::of_rank(4));
        s["rois"].meet({unknown_dim, 5});
        if (data.known())
          require(extent_product(data[2], data[3], s.where()) <= std::numeric_limits<int32_t>::max(), s.where(),
                  " the images are too large: data ", data.get());
        const Shape result{rois[0], data[1], p.pooled_size[0], p.pooled_size[1]};
        s.output(0).meet(result);
        s.output(1).meet(result);
      })
      .infer_type([](const ROIPooling&, Types& t) {
        t["data"].meet(t.output(0));
        t["data"].meet(t["rois"]);
        if (t["data"].known()) require_floating(t, "data", t["data"]);
        t["rois"].meet(t["data"]);
        t.output(0).meet(t["data"]);
        t.output(1).meet(DType::int32);
      })
      .gradient([](const ROIPooling& p, Grad& g) {
        const std::vector<Symbol> inputs{g.out_grad(), g.output(1), g.input("rois"), g.input("data")};
        g.set("data", roi_pooling_grad(inputs, {p}));
      });
}

OpDef define(Op<ROIPoolingGrad> op) {
  return with_fields(op)
      .inputs({"out_grad", "max_idx", "rois", "data"})
      .shape_only({"data"})
      .infer_shape([](const ROIPoolingGrad&, Shapes& s) { s.output().meet(s["data"].get()); })
      .shapes_of<ROIPooling>()
      .infer_type([](const ROIPoolingGrad&, Types& t) { t.output().meet(t["out_grad"]); })
      .types_of<ROIPooling>();
}

}  // namespace

void register_roi_pool(OpRegistry& registry) {
  add<ROIPooling>(registry, "ROIPooling", define);
  add_internal<ROIPoolingGrad>(registry, "_backward_ROIPooling", define);
}

}  // namespace symbind
