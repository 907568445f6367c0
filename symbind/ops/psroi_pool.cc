#include "symbind/ops/psroi_pool.h"

#include "symbind/graph/define.h"
#include "symbind/ops/extents.h"
#include "symbind/ops/floating.h"

namespace symbind {
namespace {

constexpr double most = 1 << 16;

// The channels that are read: each channel of the output has a grid of them.
void require_channels(Shapes& s, int64_t output_dim, int64_t group_size) {
  const auto data = s["data"];
  const int64_t needed = extent_product(output_dim, group_size * group_size, s.where());
  require(data[1] == unknown_dim || data[1] >= needed, s.where(), " needs output_dim · group_size² = ", needed,
          " channels: data ", data.get());
}

// All arrays have one floating type.
template <class P>
void one_type(const P& /*params*/, Types& t) {
  same_floating_type(t);
}

// ---- PSROIPooling ---------------------------------------------------------------------------------------------------

template <class P>
Op<P>& pool_fields(Op<P>& op) {
  return op
      .param(&PSROIPooling::spatial_scale, "spatial_scale",
             "scale of data relative to the coordinates of the regions: 1/16 for a feature map after a stride of 16",
             between(0, 1))
      .param(&PSROIPooling::output_dim, "output_dim", "number of channels of the output", between(1, 1 << 30))
      .param(&PSROIPooling::pooled_size, "pooled_size", "rows and columns of the output for each region",
             between(1, most))
      .param(&PSROIPooling::group_size, "group_size",
             "rows and columns of the grid of channels that each channel of the output is read from; 0: pooled_size",
             between(0, most))
      .check([](P& p) {
        if (p.group_size == 0) p.group_size = p.pooled_size;
      });
}

OpDef define(Op<PSROIPooling> op) {
  return pool_fields(op)
      .doc(
          "Position-sensitive pooling of regions: divides each region into a grid of pooled_size × pooled_size cells "
          "and takes the mean of each cell, from the channel (c · group_size + i) · group_size + j for channel c of "
          "the output and the cell (i, j) of a grid of group_size × group_size. data is (n, output_dim · group_size², "
          "rows, columns), rois (regions, 5) with rows (image index, x1, y1, x2, y2), corners included; the output is "
          "(regions, output_dim, pooled_size, pooled_size). Cells outside of the image, and image indices out of "
          "range, give zeros. The gradient of rois is zero.")
      .precision(Precision::full)
      .inputs({"data", "rois"})
      .infer_shape([](const PSROIPooling& p, Shapes& s) {
        auto data = s["data"], rois = s["rois"];
        data.meet(Shape::of_rank(4));
        rois.meet({unknown_dim, 5});
        require_channels(s, p.output_dim, p.group_size);
        s.output().meet({rois[0], p.output_dim, p.pooled_size, p.pooled_size});
        rois.meet_dim(0, s.output()[0]);
      })
      .infer_type(one_type<PSROIPooling>)
      .gradient([](const PSROIPooling& p, Grad& g) {
        g.set("data", psroi_pooling_grad(g.out_grad(), g.input("rois"), g.input("data"), {p}));
      });
}

OpDef define(Op<PSROIPoolingGrad> op) {
  return pool_fields(op)
      .inputs({"out_grad", "rois", "data"})
      .shape_only({"data"})
      .infer_shape([](const PSROIPoolingGrad&, Shapes& s) { s.output().meet(s["data"].get()); })
      .shapes_of<PSROIPooling>()
      .infer_type(one_type<PSROIPoolingGrad>)
      .types_of<PSROIPooling>();
}

// ---- DeformablePSROIPooling -----------------------------------------------------------------------------------------

template <class P>
Op<P>& deformable_fields(Op<P>& op) {
  return op
      .param(&DeformablePSROIPooling::spatial_scale, "spatial_scale",
             "scale of data relative to the coordinates of the regions: 1/16 for a feature map after a stride of 16",
             between(0, 1))
      .param(&DeformablePSROIPooling::output_dim, "output_dim", "number of channels of the output", between(1, 1 << 30))
      .param(&DeformablePSROIPooling::group_size, "group_size",
             "rows and columns of the grid of channels that each channel of the output is read from", between(1, most))
      .param(&DeformablePSROIPooling::pooled_size, "pooled_size", "rows and columns of the output for each region",
             between(1, most))
      .param(&DeformablePSROIPooling::part_size, "part_size",
             "rows and columns of the grid of offsets of each region; 0: pooled_size", between(0, most))
      .param(&DeformablePSROIPooling::sample_per_part, "sample_per_part",
             "number of points along each axis of a cell whose mean is taken", between(1, 1 << 10))
      .param(&DeformablePSROIPooling::trans_std, "trans_std",
             "factor of the offsets: with trans 1 a cell is moved by trans_std times the size of the region",
             between(0, 1))
      .param(&DeformablePSROIPooling::no_trans, "no_trans", "compute without the offsets trans")
      .check([](P& p) {
        if (p.part_size == 0) p.part_size = p.pooled_size;
      });
}

OpDef define(Op<DeformablePSROIPooling> op) {
  return deformable_fields(op)
      .doc(
          "Position-sensitive pooling of regions whose cells are moved: each cell is the mean of sample_per_part × "
          "sample_per_part points, interpolated bilinearly, of those that are inside of the image. data is (n, "
          "output_dim · group_size², rows, columns), rois (regions, 5) with rows (image index, x1, y1, x2, y2), "
          "corners included; trans is (regions, 2 · classes, part_size, part_size), the offsets across and down of "
          "each class, where a class has output_dim / classes channels of the output. The output is (regions, "
          "output_dim, pooled_size, pooled_size). An image index out of range gives zeros. The gradient of rois is "
          "zero.")
      .precision(Precision::full)
      .inputs([](const DeformablePSROIPooling& p) {
        return p.no_trans ? Names{"data", "rois"} : Names{"data", "rois", "trans"};
      })
      .outputs_in_files([](const DeformablePSROIPooling&) { return 2; })
      .infer_shape([](const DeformablePSROIPooling& p, Shapes& s) {
        auto data = s["data"], rois = s["rois"];
        data.meet(Shape::of_rank(4));
        rois.meet({unknown_dim, 5});
        require_channels(s, p.output_dim, p.group_size);
        s.output().meet({rois[0], p.output_dim, p.pooled_size, p.pooled_size});
        rois.meet_dim(0, s.output()[0]);
        if (p.no_trans) return;
        auto trans = s["trans"];
        trans.meet({rois[0], unknown_dim, p.part_size, p.part_size});
        rois.meet_dim(0, trans[0]);
        const int64_t offsets = trans[1];
        require(offsets == unknown_dim || (offsets >= 2 && offsets % 2 == 0 && p.output_dim % (offsets / 2) == 0),
                s.where(), " trans needs two channels for each class, and output_dim = ", p.output_dim.get(),
                " must be a multiple of the number of classes: trans ", trans.get());
      })
      .infer_type(one_type<DeformablePSROIPooling>)
      .gradient([](const DeformablePSROIPooling& p, Grad& g) {
        std::vector<Symbol> inputs{g.out_grad(), g.input("data"), g.input("rois")};
        if (!p.no_trans) inputs.push_back(g.input("trans"));
        const Symbol grads = deformable_psroi_pooling_grad(inputs, {p});
        g.set("data", p.no_trans ? grads : grads[0]);
        if (!p.no_trans) g.set("trans", grads[1]);
      });
}

OpDef define(Op<DeformablePSROIPoolingGrad> op) {
  return deformable_fields(op)
      .inputs([](const DeformablePSROIPoolingGrad& p) {
        return p.no_trans ? Names{"out_grad", "data", "rois"} : Names{"out_grad", "data", "rois", "trans"};
      })
      .outputs([](const DeformablePSROIPoolingGrad& p) {
        return p.no_trans ? Names{"data_grad"} : Names{"data_grad", "trans_grad"};
      })
      .infer_shape([](const DeformablePSROIPoolingGrad& p, Shapes& s) {
        s.output(0).meet(s["data"].get());
        if (!p.no_trans) s.output(1).meet(s["trans"].get());
      })
      .shapes_of<DeformablePSROIPooling>()
      .infer_type(one_type<DeformablePSROIPoolingGrad>)
      .types_of<DeformablePSROIPooling>();
}

}  // namespace

void register_psroi_pool(OpRegistry& registry) {
  add<PSROIPooling>(registry, "_contrib_PSROIPooling", define);
  add_internal<PSROIPoolingGrad>(registry, "_backward_PSROIPooling", define);
  add<DeformablePSROIPooling>(registry, "_contrib_DeformablePSROIPooling", define);
  add_internal<DeformablePSROIPoolingGrad>(registry, "_backward_DeformablePSROIPooling", define);
}

}  // namespace symbind
