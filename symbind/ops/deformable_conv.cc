#include "symbind/ops/deformable_conv.h"

#include <limits>
#include <type_traits>

#include "symbind/graph/define.h"
#include "symbind/ops/conv.h"
#include "symbind/ops/extents.h"
#include "symbind/ops/floating.h"

namespace symbind {
namespace {

// Fills the tuples that were left out.
void complete_window(DeformableConvolution& p) {
  require(p.kernel.size() == 2, "kernel must have 2 numbers: ", print(p.kernel));
  require(!p.layout || *p.layout == "NCHW", "the layout must be 'NCHW' or None: ", print(p.layout));
  const auto fill = [](Tuple& tuple, int64_t value, const char* name) {
    if (tuple.empty()) tuple = {value, value};
    require(tuple.size() == 2, name, " must have 2 numbers: ", print(tuple));
  };
  fill(p.stride, 1, "stride");
  fill(p.dilate, 1, "dilate");
  fill(p.pad, 0, "pad");
  for (const Tuple* tuple : {static_cast<const Tuple*>(&p.kernel), static_cast<const Tuple*>(&p.stride),
                             static_cast<const Tuple*>(&p.dilate), static_cast<const Tuple*>(&p.pad)})
    for (const int64_t value : *tuple) require(value <= largest_window, "a number is too large: ", print(*tuple));
  require(p.num_filter % p.num_group == 0, "num_filter must be a multiple of num_group: num_filter ",
          p.num_filter.get(), ", num_group ", p.num_group);
}

template <class P>
Op<P>& with_fields(Op<P>& op) {
  return op.param(&DeformableConvolution::kernel, "kernel", "rows and columns of the window", each_at_least(1))
      .param(&DeformableConvolution::stride, "stride", "step of the window, down and across; (): 1", each_at_least(1))
      .param(&DeformableConvolution::dilate, "dilate",
             "distance between neighbouring elements of the kernel, down and across; (): 1", each_at_least(1))
      .param(&DeformableConvolution::pad, "pad", "number of zeros added on each side, down and across; (): 0",
             each_at_least(0))
      .param(&DeformableConvolution::num_filter, "num_filter", "number of output channels", between(1, 1 << 30))
      .param(&DeformableConvolution::num_group, "num_group",
             "number of groups that the channels are split into; each group is computed separately",
             between(1, 1 << 30))
      .param(&DeformableConvolution::num_deformable_group, "num_deformable_group",
             "number of groups that the channels of data are split into; each group has offsets of its own",
             between(1, 1 << 20))
      .param(&DeformableConvolution::workspace, "workspace", "accepted for compatibility and ignored")
      .param(&DeformableConvolution::no_bias, "no_bias", "compute without the bias input")
      .param(&DeformableConvolution::layout, "layout", "order of the axes: 'NCHW', or None for the same",
             one_of({"NCDHW", "NCHW", "NCW"}))
      .check([](P& p) { complete_window(p); });
}

template <class P>
Op<P>& with_modulated_fields(Op<P>& op) {
  return with_fields(op).param(&ModulatedDeformableConvolution::im2col_step, "im2col_step",
                               "accepted for compatibility and ignored", at_least(1));
}

template <class P>
inline constexpr bool has_mask = std::is_base_of_v<ModulatedDeformableConvolution, P>;

template <class P>
void infer(const P& p, Shapes& s) {
  auto data = s["data"], offset = s["offset"], weight = s["weight"];
  data.meet(Shape::of_rank(4));
  weight.meet({p.num_filter, unknown_dim, p.kernel[0], p.kernel[1]});
  if (data[1] != unknown_dim) {
    require(data[1] % p.num_group == 0 && data[1] % p.num_deformable_group == 0, s.where(),
            " the channels must be a multiple of num_group = ", p.num_group,
            " and of num_deformable_group = ", p.num_deformable_group, ": data ", data.get());
    weight.meet_dim(1, data[1] / p.num_group);
  } else if (weight[1] != unknown_dim) {
    data.meet_dim(1, weight[1] * p.num_group);
  }
  if (!p.no_bias) s["bias"].meet({p.num_filter});
  Shape result{data[0], p.num_filter};
  for (const int axis : {0, 1}) {
    const auto i = static_cast<size_t>(axis);
    const int64_t extent = data[2 + axis], reach = p.dilate[i] * (p.kernel[i] - 1) + 1;
    require(extent == unknown_dim || (extent >= 1 && extent <= largest_window && extent + 2 * p.pad[i] >= reach),
            s.where(), " the kernel does not fit into the padded image: data ", data.get(), ", kernel ",
            print(p.kernel));
    result.push_back(extent == unknown_dim ? unknown_dim : (extent + 2 * p.pad[i] - reach) / p.stride[i] + 1);
  }
  require(!data.known() || extent_product(data[2], data[3], s.where()) <= std::numeric_limits<int32_t>::max(),
          s.where(), " the images are too large: data ", data.get());
  s.output().meet(result);
  const int64_t taps =
      extent_product(extent_product(p.kernel[0], p.kernel[1], s.where()), p.num_deformable_group, s.where());
  const Shape out = s.output().get();
  offset.meet({out[0], extent_product(2, taps, s.where()), out[2], out[3]});
  if constexpr (has_mask<P>) s["mask"].meet({out[0], taps, out[2], out[3]});
}

constexpr const char* description =
    "data is (n, channels, rows, columns), weight (num_filter, channels / num_group, kernel), bias (num_filter), "
    "offset (n, num_deformable_group · 2 · kernel, out_rows, out_columns): for each element of the kernel how far down "
    "and then how far across it is moved, in pixels. Between pixels data is interpolated bilinearly; outside it is 0.";

template <class P>
Names inputs_of(const P& p) {
  Names names{"data", "offset"};
  if (has_mask<P>) names.emplace_back("mask");
  names.emplace_back("weight");
  if (!p.no_bias) names.emplace_back("bias");
  return names;
}

// The position of the weight among the inputs, `data` being that of the data.
template <class P>
constexpr size_t weight_after(size_t data) {
  return data + (has_mask<P> ? 3 : 2);
}

// The gradients by `grad_data` of (out_grad, data, offset, [mask,] weight) and by `grad_weight` of the same.
template <class P, class GradData, class GradWeight>
void set_gradients(const P& p, Grad& g, const Builder<GradData>& grad_data, const Builder<GradWeight>& grad_weight) {
  std::vector<Symbol> inputs{g.out_grad(), g.input("data"), g.input("offset")};
  if (has_mask<P>) inputs.push_back(g.input("mask"));
  inputs.push_back(g.input("weight"));
  if (g.wants("data") || g.wants("offset") || (has_mask<P> && g.wants("mask"))) {
    const Symbol grads = grad_data(inputs, {p});
    g.set("data", grads[0]);
    g.set("offset", grads[1]);
    if (has_mask<P>) g.set("mask", grads[2]);
  }
  if (g.wants("weight") || (!p.no_bias && g.wants("bias"))) {
    const Symbol grads = grad_weight(inputs, {p});
    g.set("weight", p.no_bias ? grads : grads[0]);
    if (!p.no_bias) g.set("bias", grads[1]);
  }
}

OpDef define(Op<DeformableConvolution> op) {
  return with_fields(op)
      .doc(
          join("Deformable convolution: a convolution whose kernel elements are moved at each position. ", description))
      .precision(Precision::low)
      .inputs([](const DeformableConvolution& p) { return inputs_of(p); })
      .multiply_adds([](const DeformableConvolution&, auto in, auto out) {
        return products_with_weight(out[0], in[weight_after<DeformableConvolution>(0)]);
      })
      .infer_shape([](const DeformableConvolution& p, Shapes& s) { infer(p, s); })
      .infer_type([](const DeformableConvolution&, Types& t) { same_floating_type(t); })
      .gradient([](const DeformableConvolution& p, Grad& g) {
        set_gradients(p, g, deformable_convolution_grad_data, deformable_convolution_grad_weight);
      });
}

OpDef define(Op<ModulatedDeformableConvolution> op) {
  return with_modulated_fields(op)
      .doc(join("Modulated deformable convolution: a convolution whose kernel elements are moved and weighted at each "
                "position. ",
                description,
                " mask is (n, num_deformable_group · kernel, out_rows, out_columns), the factor of each element."))
      .precision(Precision::low)
      .inputs([](const ModulatedDeformableConvolution& p) { return inputs_of(p); })
      .multiply_adds([](const ModulatedDeformableConvolution&, auto in, auto out) {
        return products_with_weight(out[0], in[weight_after<ModulatedDeformableConvolution>(0)]);
      })
      .infer_shape([](const ModulatedDeformableConvolution& p, Shapes& s) { infer(p, s); })
      .infer_type([](const ModulatedDeformableConvolution&, Types& t) { same_floating_type(t); })
      .gradient([](const ModulatedDeformableConvolution& p, Grad& g) {
        set_gradients(p, g, modulated_deformable_convolution_grad_data, modulated_deformable_convolution_grad_weight);
      });
}

// ---- Gradients ------------------------------------------------------------------------------------------------------

template <class Forward, class P>
Op<P>& grad_data(Op<P>& op) {
  const bool modulated = has_mask<P>;
  return op
      .inputs(modulated ? Names{"out_grad", "data", "offset", "mask", "weight"}
                        : Names{"out_grad", "data", "offset", "weight"})
      .outputs(modulated ? Names{"data_grad", "offset_grad", "mask_grad"} : Names{"data_grad", "offset_grad"})
      .multiply_adds([](const P&, auto in, auto) { return products_with_weight(in[0], in[weight_after<P>(1)]); })
      .infer_shape([modulated](const P&, Shapes& s) {
        s.output(0).meet(s["data"].get());
        s.output(1).meet(s["offset"].get());
        if (modulated) s.output(2).meet(s["mask"].get());
      })
      .template shapes_of<Forward>()
      .template types_of<Forward>();
}

template <class Forward, class P>
Op<P>& grad_weight(Op<P>& op) {
  return op
      .inputs(has_mask<P> ? Names{"out_grad", "data", "offset", "mask", "weight"}
                          : Names{"out_grad", "data", "offset", "weight"})
      .shape_only({"weight"})
      .outputs([](const P& p) {
        return p.no_bias ? Names{"weight_grad"} : Names{"weight_grad", "bias_grad"};
      })
      .multiply_adds([](const P&, auto in, auto) { return products_with_weight(in[0], in[weight_after<P>(1)]); })
      .infer_shape([](const P& p, Shapes& s) {
        s.output(0).meet(s["weight"].get());
        if (!p.no_bias) s.output(1).meet({p.num_filter});
      })
      .template shapes_of<Forward>()
      .template types_of<Forward>();
}

OpDef define(Op<DeformableConvolutionGradData> op) { return grad_data<DeformableConvolution>(with_fields(op)); }
OpDef define(Op<DeformableConvolutionGradWeight> op) { return grad_weight<DeformableConvolution>(with_fields(op)); }
OpDef define(Op<ModulatedDeformableConvolutionGradData> op) {
  return grad_data<ModulatedDeformableConvolution>(with_modulated_fields(op));
}
OpDef define(Op<ModulatedDeformableConvolutionGradWeight> op) {
  return grad_weight<ModulatedDeformableConvolution>(with_modulated_fields(op));
}

}  // namespace

void register_deformable_conv(OpRegistry& registry) {
  add<DeformableConvolution>(registry, "_contrib_DeformableConvolution", define);
  add_internal<DeformableConvolutionGradData>(registry, "_backward_DeformableConvolution_data", define);
  add_internal<DeformableConvolutionGradWeight>(registry, "_backward_DeformableConvolution_weight", define);
  add<ModulatedDeformableConvolution>(registry, "_contrib_ModulatedDeformableConvolution", define);
  add_internal<ModulatedDeformableConvolutionGradData>(registry, "_backward_ModulatedDeformableConvolution_data",
                                                       define);
  add_internal<ModulatedDeformableConvolutionGradWeight>(registry, "_backward_ModulatedDeformableConvolution_weight",
                                                         define);
}

}  // namespace symbind
