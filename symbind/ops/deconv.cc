#include "symbind/ops/deconv.h"

#include <algorithm>

#include "symbind/graph/define.h"
#include "symbind/ops/extents.h"
#include "symbind/ops/floating.h"
#include "symbind/ops/reduce.h"

namespace symbind {
namespace {

void complete(Deconvolution& p) {
  const size_t rank = p.kernel.size();
  require(rank >= 1 && rank <= 3, "kernel must have 1, 2 or 3 numbers: ", print(p.kernel));
  if (p.stride.empty()) p.stride.assign(rank, 1);
  if (p.dilate.empty()) p.dilate.assign(rank, 1);
  if (p.pad.empty()) p.pad.assign(rank, 0);
  if (p.adj.empty()) p.adj.assign(rank, 0);
  for (const auto& [name, tuple] :
       {std::pair("stride", &p.stride), {"dilate", &p.dilate}, {"pad", &p.pad}, {"adj", &p.adj}})
    require(tuple->size() == rank, name, " must have as many numbers as kernel: ", name, " ", print(*tuple),
            ", kernel ", print(p.kernel));
  if (std::all_of(p.target_shape.begin(), p.target_shape.end(), [](int64_t extent) { return extent == 0; }))
    p.target_shape.clear();  // MXNet writes zeros where none is given, whatever the kernel
  require(p.target_shape.empty() || p.target_shape.size() == rank,
          "target_shape must have as many numbers as kernel: target_shape ", print(p.target_shape), ", kernel ",
          print(p.kernel));
  for (const Tuple* tuple :
       std::initializer_list<const Tuple*>{&p.kernel, &p.stride, &p.dilate, &p.pad, &p.adj, &p.target_shape})
    for (const int64_t number : *tuple)
      require(number <= largest_window, "kernel, stride, dilate, pad, adj and target_shape must be at most ",
              largest_window, ": ", number);
  require(p.num_filter % p.num_group == 0, "num_group must divide num_filter: num_group ", p.num_group, ", num_filter ",
          p.num_filter);
  require(!p.layout || (p.layout->size() == rank + 2 && !is_channels_last(p.layout)),
          "layout must have the channels second and fit the kernel: layout ", p.layout.value_or(""));
}

// One spatial axis: how much is cropped at the beginning, and the remaining extent.
struct Extent {
  int64_t pad, result;
};
Extent extent_of(const Deconvolution& p, size_t i, int64_t in, const std::string& where) {
  const int64_t reach = p.dilate[i] * (p.kernel[i] - 1) + 1;
  const int64_t whole = extent_sum(extent_product(in, p.stride[i], where), reach, where) - p.stride[i];
  if (p.target_shape.empty() || p.target_shape[i] == 0) {
    const int64_t result = whole - 2 * p.pad[i] + p.adj[i];
    require(result > 0 || in == 0, where, " pad ", print(p.pad), " leaves nothing of ", whole, " elements");
    return {p.pad[i], in == 0 ? 0 : result};
  }
  const int64_t spare = whole - p.target_shape[i];
  require(spare >= 0, where, " target_shape ", print(p.target_shape), " is more than the ", whole,
          " elements there are");
  return {(spare + 1) / 2, p.target_shape[i]};
}

template <class P>
Op<P>& with_fields(Op<P>& op) {
  return op
      .param(&Deconvolution::kernel, "kernel", "extent of the window along the spatial axes: (w), (h, w) or (d, h, w)",
             each_at_least(1))
      .param(&Deconvolution::stride, "stride",
             "distance between neighbouring windows in the output along each spatial axis; (): 1", each_at_least(1))
      .param(&Deconvolution::dilate, "dilate",
             "distance between neighbouring elements of the kernel along each spatial axis; (): 1", each_at_least(1))
      .param(&Deconvolution::pad, "pad",
             "number of elements removed on each side of each spatial axis of the output; (): 0", each_at_least(0))
      .param(&Deconvolution::adj, "adj",
             "number of elements added at the end of each spatial axis of the output; (): 0", each_at_least(0))
      .param(&Deconvolution::target_shape, "target_shape",
             "spatial extents of the output; given, they replace pad and adj", each_at_least(0))
      .param(&Deconvolution::num_filter, "num_filter", "number of output channels", at_least(1))
      .param(&Deconvolution::num_group, "num_group",
             "number of groups that the channels are split into; each group is computed separately", at_least(1))
      .param(&Deconvolution::workspace, "workspace", "accepted for compatibility and ignored")
      .param(&Deconvolution::no_bias, "no_bias", "compute without the bias input")
      .param(&Deconvolution::cudnn_tune, "cudnn_tune", "accepted for compatibility and ignored",
             one_of({"fastest", "limited_workspace", "off"}))
      .param(&Deconvolution::cudnn_off, "cudnn_off", "accepted for compatibility and ignored")
      .param(&Deconvolution::layout, "layout",
             "order of the axes; the channels must be second, as in 'NCHW'; None: the same", one_of(data_layout::all))
      .check([](P& p) { complete(p); });
}

void infer(const Deconvolution& p, Shapes& s) {
  const auto data = s["data"];
  const int rank = static_cast<int>(p.kernel.size()) + 2;
  if (!p.no_bias) s["bias"].meet({p.num_filter});
  if (!data.rank_known()) return;
  require(data.rank() == rank, s.where(), " data must have ", rank, " axes for kernel ", print(p.kernel), ": data ",
          data.get());
  require(data[1] == unknown_dim || data[1] % p.num_group == 0, s.where(),
          " num_group must divide the channels: num_group ", p.num_group, ", data ", data.get());
  Shape weight{data[1], p.num_filter / p.num_group};
  for (const int64_t dim : p.kernel) weight.push_back(dim);
  s["weight"].meet(weight);
  Shape result{data[0], p.num_filter};
  for (size_t i = 0; i < p.kernel.size(); ++i) {
    const int64_t in = data[static_cast<int>(i) + 2];
    result.push_back(in == unknown_dim ? unknown_dim : extent_of(p, i, in, s.where()).result);
  }
  s.output().meet(result);
}

OpDef define(Op<Deconvolution> op) {
  return with_fields(op)
      .doc(
          "Transposed convolution: the gradient of Convolution with respect to its data, as an operator. data is (n, "
          "channels, spatial…), weight (channels, num_filter / num_group, kernel…), bias (num_filter); the output is "
          "(n, num_filter, out…) with out = (in - 1) · stride + dilate · (kernel - 1) + 1 - 2 · pad + adj.")
      .precision(Precision::low)
      .inputs([](const Deconvolution& p) {
        return p.no_bias ? Names{"data", "weight"} : Names{"data", "weight", "bias"};
      })
      .infer_shape([](const Deconvolution& p, Shapes& s) { infer(p, s); })
      .infer_type([](const Deconvolution&, Types& t) { same_floating_type(t); })
      .multiply_adds([](const Deconvolution&, auto in, auto) { return products_with_weight(in[0], in[1]); })
      .gradient([](const Deconvolution& p, Grad& g) {
        const auto dy = g.out_grad(), x = g.input("data"), w = g.input("weight");
        if (g.wants("data")) g.set("data", deconvolution_grad_data(dy, w, x, {p}));
        if (g.wants("weight")) g.set("weight", deconvolution_grad_weight(dy, x, w, {p}));
        if (!p.no_bias && g.wants("bias")) g.set("bias", sum(dy, {.axis = Tuple{1}, .exclude = true}));
      });
}

OpDef define(Op<DeconvolutionGradData> op) {
  return with_fields(op)
      .inputs({"out_grad", "weight", "data"})
      .shape_only({"data"})
      .multiply_adds([](const auto&, auto in, auto) { return products_with_weight(in[2], in[1]); })
      .infer_shape([](const auto&, Shapes& s) { s.output().meet(s["data"]); })
      .shapes_of<Deconvolution>()
      .types_of<Deconvolution>();
}

OpDef define(Op<DeconvolutionGradWeight> op) {
  return with_fields(op)
      .inputs({"out_grad", "data", "weight"})
      .shape_only({"weight"})
      .multiply_adds([](const auto&, auto in, auto) { return products_with_weight(in[1], in[2]); })
      .infer_shape([](const auto&, Shapes& s) { s.output().meet(s["weight"]); })
      .shapes_of<Deconvolution>()
      .types_of<Deconvolution>();
}

}  // namespace

Convolution reversed(const Deconvolution& params, const Shape& data) {
  Convolution made;
  made.kernel = params.kernel;
  made.stride = params.stride;
  made.dilate = params.dilate;
  for (size_t i = 0; i < params.kernel.size(); ++i)
    made.pad.push_back(extent_of(params, i, data[static_cast<int>(i) + 2], "[Deconvolution]").pad);
  made.num_filter = data[1];
  made.num_group = params.num_group;
  made.no_bias = true;
  return made;
}

void register_deconv(OpRegistry& registry) {
  add<Deconvolution>(registry, "Deconvolution", define);
  add_internal<DeconvolutionGradData>(registry, "_backward_Deconvolution_data", define);
  add_internal<DeconvolutionGradWeight>(registry, "_backward_Deconvolution_weight", define);
}

}  // namespace symbind
