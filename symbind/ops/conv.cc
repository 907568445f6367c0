#include "symbind/ops/conv.h"

#include <algorithm>

#include "symbind/ops/conv_fields.h"
#include "symbind/ops/extents.h"
#include "symbind/ops/floating.h"

namespace symbind {

bool is_channels_last(const std::optional<std::string>& layout) { return layout && layout->back() == 'C'; }

void complete(Convolution& p) {
  const size_t rank = p.kernel.size();
  require(rank >= 1 && rank <= 3, "kernel must have 1, 2 or 3 numbers: ", print(p.kernel));
  if (p.stride.empty()) p.stride.assign(rank, 1);
  if (p.dilate.empty()) p.dilate.assign(rank, 1);
  if (p.pad.empty()) p.pad.assign(rank, 0);
  for (const auto& [name, tuple] : {std::pair("stride", &p.stride), {"dilate", &p.dilate}, {"pad", &p.pad}})
    require(tuple->size() == rank, name, " must have as many numbers as kernel: ", name, " ", print(*tuple),
            ", kernel ", print(p.kernel));
  for (const Tuple* tuple : std::initializer_list<const Tuple*>{&p.kernel, &p.stride, &p.dilate, &p.pad})
    for (int64_t number : *tuple)
      require(number <= largest_window, "kernel, stride, dilate and pad must be at most ", largest_window, ": ",
              number);
  require(p.num_filter % p.num_group == 0, "num_group must divide num_filter: num_group ", p.num_group, ", num_filter ",
          p.num_filter);
  require(!p.layout || p.layout->size() == rank + 2, "layout must fit the kernel: layout ", p.layout.value_or(""),
          ", kernel ", print(p.kernel));
}

namespace {

int channel_axis(const Convolution& p) {
  return is_channels_last(p.layout) ? static_cast<int>(p.kernel.size()) + 1 : 1;
}
int spatial_axis(const Convolution& p, size_t axis) {
  return static_cast<int>(axis) + (is_channels_last(p.layout) ? 1 : 2);
}

Shape weight_shape(const Convolution& p, int64_t group_channels) {
  Shape shape{p.num_filter};
  if (!is_channels_last(p.layout)) shape.push_back(group_channels);
  for (int64_t dim : p.kernel) shape.push_back(dim);
  if (is_channels_last(p.layout)) shape.push_back(group_channels);
  return shape;
}

void infer_channels(const Convolution& p, Shapes& s) {
  auto data = s["data"], weight = s["weight"];
  const int axis = channel_axis(p);
  const int64_t channels = data[axis];
  if (channels != unknown_dim)
    require(channels % p.num_group == 0, s.where(), " num_group must divide the channels: num_group ", p.num_group,
            ", data ", data.get());
  if (const Shape& given = weight; channels != unknown_dim && given.rank() == data.rank()) {
    const int64_t has = given[axis];
    require(has == unknown_dim || has == channels / p.num_group, s.where(), " weight has ", has,
            p.num_group > 1 ? " input channels in each group, data has " : " input channels, data has ",
            channels / p.num_group, ": weight ", given, ", data ", data.get());
  }
  weight.meet(weight_shape(p, channels == unknown_dim ? unknown_dim : channels / p.num_group));
  if (!p.no_bias) s["bias"].meet({p.num_filter});
  if (weight[axis] != unknown_dim) data.meet_dim(axis, extent_product(weight[axis], p.num_group, s.where()));
}

}  // namespace

void infer_convolution(const Convolution& p, Shapes& s) {
  auto data = s["data"], output = s.output();
  const int rank = static_cast<int>(p.kernel.size()) + 2;
  if (!data.rank_known()) return;
  require(data.rank() == rank, s.where(), " data must have ", rank, " axes for kernel ", print(p.kernel), ": data ",
          data.get());
  infer_channels(p, s);
  Shape result = Shape::of_rank(rank);
  result[0] = data[0];
  result[channel_axis(p)] = p.num_filter;
  for (size_t i = 0; i < p.kernel.size(); ++i) {
    const int axis = spatial_axis(p, i);
    if (data[axis] == unknown_dim) continue;
    const int64_t reach = p.dilate[i] * (p.kernel[i] - 1) + 1, padded = data[axis] + 2 * p.pad[i];
    require(reach <= padded, s.where(), " kernel reaches over ", reach, " elements, padded data has ", padded,
            " along axis ", axis, ": kernel ", print(p.kernel), ", data ", data.get());
    result[axis] = (padded - reach) / p.stride[i] + 1;
  }
  output.meet(result);
  // Backwards: the batch always, a spatial extent where each position of the output is one of the input.
  data.meet_dim(0, output[0]);
  for (size_t i = 0; i < p.kernel.size(); ++i) {
    const int axis = spatial_axis(p, i);
    if (data[axis] == unknown_dim && output[axis] != unknown_dim && p.stride[i] == 1)
      data.meet_dim(axis, output[axis] + p.dilate[i] * (p.kernel[i] - 1) - 2 * p.pad[i]);
  }
}

namespace {

OpDef define_convolution(Op<Convolution> op) {
  return with_convolution_fields(op)
      .aliases({"Convolution_v1"})  // in networks of 2016 and 2017
      .doc(
          "Convolution (cross-correlation) over one, two or three spatial axes plus a bias. data is (n, channels, "
          "spatial…), weight (num_filter, channels / num_group, kernel…), bias (num_filter); the output is (n, "
          "num_filter, out…) with out = floor((in + 2 · pad - dilate · (kernel - 1) - 1) / stride) + 1.")
      .precision(Precision::low)
      .inputs([](const Convolution& p) {
        return p.no_bias ? Names{"data", "weight"} : Names{"data", "weight", "bias"};
      })
      .infer_shape([](const Convolution& p, Shapes& s) { infer_convolution(p, s); })
      .infer_type([](const Convolution&, Types& t) { same_floating_type(t); })
      .multiply_adds([](const Convolution&, auto in, auto out) { return products_with_weight(out[0], in[1]); })
      .gradient([](const Convolution& p, Grad& g) {
        const auto dy = g.out_grad(), x = g.input("data"), w = g.input("weight");
        if (g.wants("data")) g.set("data", convolution_grad_data(dy, w, x, {p}));
        if (!g.wants("weight") && (p.no_bias || !g.wants("bias"))) return;
        const auto grads = convolution_grad_weight(dy, x, w, {p});
        g.set("weight", grads[0]);
        if (!p.no_bias) g.set("bias", grads[1]);
      });
}

OpDef define_grad_data(Op<ConvolutionGradData> op) {
  return with_convolution_fields(op)
      .inputs({"out_grad", "weight", "data"})
      .shape_only({"data"})
      .outputs({"data_grad"})
      .multiply_adds([](const ConvolutionGradData&, auto in, auto) { return products_with_weight(in[0], in[1]); })
      .infer_shape([](const ConvolutionGradData&, Shapes& s) { s.output().meet(s["data"]); })
      .shapes_of<Convolution>()
      .types_of<Convolution>();
}

OpDef define_grad_weight(Op<ConvolutionGradWeight> op) {
  return with_convolution_fields(op)
      .inputs({"out_grad", "data", "weight"})
      .shape_only({"weight"})
      .outputs([](const ConvolutionGradWeight& p) {
        return p.no_bias ? Names{"weight_grad"} : Names{"weight_grad", "bias_grad"};
      })
      .multiply_adds([](const ConvolutionGradWeight&, auto in, auto) { return products_with_weight(in[0], in[2]); })
      .infer_shape([](const ConvolutionGradWeight& p, Shapes& s) {
        s.output(0).meet(s["weight"]);
        if (!p.no_bias) s.output(1).meet({p.num_filter});
      })
      .shapes_of<Convolution>()
      .types_of<Convolution>();
}

}  // namespace

double products_with_weight(const Shape& array, const Shape& weight) {
  return static_cast<double>(array.size()) * static_cast<double>(weight.size() / std::max<int64_t>(weight[0], 1));
}

ConvolutionSize size_of(const Convolution& params, const Shape& data, const Shape& output) {
  ConvolutionSize size{};
  size.batch = data[0];
  size.channels = data[channel_axis(params)];
  size.filters = params.num_filter;
  size.groups = params.num_group;
  size.channels_last = is_channels_last(params.layout);
  size.in = size.out = size.kernel = size.stride = size.dilate = {1, 1, 1};
  const size_t missing = 3 - params.kernel.size();
  for (size_t i = 0; i < params.kernel.size(); ++i) {
    size.in[missing + i] = data[spatial_axis(params, i)];
    size.out[missing + i] = output[spatial_axis(params, i)];
    size.kernel[missing + i] = params.kernel[i];
    size.stride[missing + i] = params.stride[i];
    size.dilate[missing + i] = params.dilate[i];
    size.pad[missing + i] = params.pad[i];
  }
  return size;
}

void register_conv(OpRegistry& registry) {
  add(registry, "Convolution", define_convolution);
  add_internal(registry, "_backward_Convolution_data", define_grad_data);
  add_internal(registry, "_backward_Convolution_weight", define_grad_weight);
}

}  // namespace symbind
