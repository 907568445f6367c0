#include "symbind/ops/roi_align.h"

#include <limits>

#include "symbind/graph/define.h"
#include "symbind/ops/extents.h"
#include "symbind/ops/floating.h"

namespace symbind {
namespace {

constexpr int64_t most_samples = 1 << 10;

template <class P>
void check_size(P& p) {
  require(p.pooled_size.size() == 2 && p.pooled_size[0] <= 1 << 16 && p.pooled_size[1] <= 1 << 16,
          "pooled_size must have 2 numbers of at most 65536: ", print(p.pooled_size));
}

// ---- ROIAlign -------------------------------------------------------------------------------------------------------

template <class P>
Op<P>& with_fields(Op<P>& op) {
  return op
      .param(&ROIAlign::pooled_size, "pooled_size", "rows and columns of the output for each region", each_at_least(1))
      .param(&ROIAlign::spatial_scale, "spatial_scale",
             "scale of data relative to the coordinates of the regions: 1/16 for a feature map after a stride of 16",
             between(0, 1))
      .param(&ROIAlign::sample_ratio, "sample_ratio",
             "number of points along each axis of a cell whose mean is taken; 0 or less: as many as the cell has "
             "pixels, rounded up",
             between(-most_samples, most_samples))
      .param(&ROIAlign::position_sensitive, "position_sensitive",
             "each cell of the output reads channels of its own: channels / (rows · columns of pooled_size) remain")
      .param(&ROIAlign::aligned, "aligned",
             "coordinates are those of the centres of pixels, and regions may be smaller than a pixel")
      .check([](P& p) { check_size(p); });
}

OpDef define(Op<ROIAlign> op) {
  return with_fields(op)
      .doc(
          "Regions of images at a fixed size: divides each region into a grid of pooled_size cells and takes the mean "
          "of points of each cell, interpolated bilinearly. data is (n, channels, rows, columns), rois (regions, 5) "
          "with rows (image index, x1, y1, x2, y2); the output is (regions, channels, pooled_size). An image index out "
          "of range gives zeros. The gradient of rois is zero.")
      .precision(Precision::full)
      .inputs({"data", "rois"})
      .infer_shape([](const ROIAlign& p, Shapes& s) {
        auto data = s["data"], rois = s["rois"];
        data.meet(Shape::of_rank(4));
        rois.meet({unknown_dim, 5});
        require(!data.known() || extent_product(data[2], data[3], s.where()) <= std::numeric_limits<int32_t>::max(),
                s.where(), " the images are too large: data ", data.get());
        int64_t channels = data[1];
        const int64_t cells = p.pooled_size[0] * p.pooled_size[1];
        if (p.position_sensitive && channels != unknown_dim) {
          require(channels % cells == 0, s.where(), " the channels must be a multiple of the ", cells,
                  " cells of pooled_size: data ", data.get());
          channels /= cells;
        }
        s.output().meet({rois[0], channels, p.pooled_size[0], p.pooled_size[1]});
        rois.meet_dim(0, s.output()[0]);
        data.meet_dim(1, p.position_sensitive ? extent_product(s.output()[1], cells, s.where()) : s.output()[1]);
      })
      .infer_type([](const ROIAlign&, Types& t) { same_floating_type(t); })
      .gradient([](const ROIAlign& p, Grad& g) {
        g.set("data", roi_align_grad(g.out_grad(), g.input("rois"), g.input("data"), {p}));
      });
}

OpDef define(Op<ROIAlignGrad> op) {
  return with_fields(op)
      .inputs({"out_grad", "rois", "data"})
      .shape_only({"data"})
      .infer_shape([](const ROIAlignGrad&, Shapes& s) { s.output().meet(s["data"].get()); })
      .shapes_of<ROIAlign>()
      .infer_type([](const ROIAlignGrad&, Types& t) { same_floating_type(t); })
      .types_of<ROIAlign>();
}

// ---- RROIAlign ------------------------------------------------------------------------------------------------------

OpDef define(Op<RROIAlign> op) {
  return op
      .doc(
          "Rotated regions of images at a fixed size: ROIAlign of regions (image index, x, y, width, height, angle), a "
          "row of rois each, with the centre and the size in pixels of the image and the angle in degrees. data is (n, "
          "channels, rows, columns), the output (regions, channels, pooled_size). An image index out of range gives "
          "zeros. It has no gradient.")
      .precision(Precision::full)
      .param(&RROIAlign::pooled_size, "pooled_size", "rows and columns of the output for each region", each_at_least(1))
      .param(&RROIAlign::spatial_scale, "spatial_scale",
             "scale of data relative to the coordinates of the regions: 1/16 for a feature map after a stride of 16",
             between(0, 1))
      .param(&RROIAlign::sampling_ratio, "sampling_ratio",
             "number of points along each axis of a cell whose mean is taken; 0 or less: as many as the cell has "
             "pixels, rounded up",
             between(-most_samples, most_samples))
      .check([](RROIAlign& p) { check_size(p); })
      .inputs({"data", "rois"})
      .infer_shape([](const RROIAlign& p, Shapes& s) {
        auto data = s["data"], rois = s["rois"];
        data.meet(Shape::of_rank(4));
        rois.meet({unknown_dim, 6});
        s.output().meet({rois[0], data[1], p.pooled_size[0], p.pooled_size[1]});
        rois.meet_dim(0, s.output()[0]);
        data.meet_dim(1, s.output()[1]);
      })
      .infer_type([](const RROIAlign&, Types& t) { same_floating_type(t); });
}

}  // namespace

void register_roi_align(OpRegistry& registry) {
  add<ROIAlign>(registry, "_contrib_ROIAlign", define);
  add_internal<ROIAlignGrad>(registry, "_backward_ROIAlign", define);
  add<RROIAlign>(registry, "_contrib_RROIAlign", define);
}

}  // namespace symbind
