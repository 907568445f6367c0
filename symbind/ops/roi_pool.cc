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
      .param(&ROIPooling::pooled_size, "pooled_size", "rows and columns of the output for each region",
             each_at_least(1))
      .param(&ROIPooling::spatial_scale, "spatial_scale",
             "scale of data relative to the coordinates of the regions: 1/16 for a feature map after a stride of 16",
             between(0, 1))
      .check(
          [](P& p) { require(p.pooled_size.size() == 2, "pooled_size must have 2 numbers: ", print(p.pooled_size)); });
}

OpDef define(Op<ROIPooling> op) {
  return with_fields(op)
      .doc(
          "Region-of-interest max pooling: divides each region into a grid of pooled_size cells and takes the maximum "
          "of each cell. data is (n, channels, rows, columns); rois is (regions, 5) with rows (image index, x1, y1, "
          "x2, y2), corners included; the output is (regions, channels, pooled_size). An image index out of range "
          "gives zeros.")
      .precision(Precision::full)
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
