#include "symbind/ops/conv_statistics.h"

#include "symbind/ops/activation.h"
#include "symbind/ops/batch_norm_fields.h"
#include "symbind/ops/broadcast.h"
#include "symbind/ops/cast.h"
#include "symbind/ops/conv_fields.h"
#include "symbind/ops/elementwise.h"
#include "symbind/ops/floating.h"
#include "symbind/ops/reduce.h"
#include "symbind/ops/relu_signs.h"
#include "symbind/ops/reshape.h"

namespace symbind {
namespace {

int channel_axis(const Convolution& p, int rank) { return is_channels_last(p.layout) ? rank - 1 : 1; }

OpDef define_statistics(Op<ConvolutionStatistics> op) {
  return with_convolution_fields(op)
      .doc("A convolution that also returns the sums of each channel's elements and of their squares.")
      .inputs([](const ConvolutionStatistics& p) {
        return p.no_bias ? Names{"data", "weight"} : Names{"data", "weight", "bias"};
      })
      .outputs({"output", "channel_sum", "channel_square_sum"})
      .multiply_adds(
          [](const ConvolutionStatistics&, auto in, auto out) { return products_with_weight(out[0], in[1]); })
      .infer_shape([](const ConvolutionStatistics& p, Shapes& s) {
        infer_convolution(p, s);
        for (const size_t index : {1, 2}) s.output(index).meet({p.num_filter});
      })
      .infer_type([](const ConvolutionStatistics& p, Types& t) {
        t["data"].meet(t.output(0));
        t.output(0).meet(t["data"]);
        if (!t["data"].known()) return;
        require_floating(t, "data", t["data"]);
        t["weight"].meet(t["data"]);
        if (!p.no_bias) t["bias"].meet(t["data"]);
        for (const size_t index : {1, 2}) t.output(index).meet(at_least_float32(t["data"]));
      });
}

OpDef define_grad_add_relu(Op<ConvolutionGradAddRelu> op) {
  return with_convolution_fields(op)
      .param(&ConvolutionGradAddRelu::signs, "signs", "signs are given instead of the activation")
      .inputs([](const ConvolutionGradAddRelu& p) {
        return Names{"out_grad", "weight", "data", "more_grad", p.signs ? "signs" : "activation", "norm_data", "mean"};
      })
      .shape_only({"data"})
      .outputs({"sum_grad", "grad_sum", "grad_away_sum"})
      .multiply_adds([](const ConvolutionGradAddRelu&, auto in, auto) { return products_with_weight(in[0], in[1]); })
      .infer_shape([](const ConvolutionGradAddRelu& p, Shapes& s) {
        for (const char* input : {"more_grad", "norm_data"}) s[input].meet(s["data"]);
        if (!p.signs) s["activation"].meet(s["data"]);
        s.output(0).meet(s["data"]);
        if (!s["data"].rank_known()) return;
        const int axis = channel_axis(p, s["data"].get().rank());
        if (p.signs && s["data"].known()) s["signs"].meet(shape_of_signs(s["data"], axis));
        s["mean"].meet({s["data"][axis]});
        for (const size_t index : {1, 2}) s.output(index).meet({s["data"][axis]});
      })
      .shapes_of<Convolution>()
      .infer_type([](const ConvolutionGradAddRelu& p, Types& t) {
        for (const char* input : {"more_grad", "norm_data"}) t[input].meet(t["data"]);
        if (p.signs)
          t["signs"].meet(DType::uint8);
        else
          t["activation"].meet(t["data"]);
        t.output(0).meet(t["data"]);
        if (!t["data"].known()) return;
        const DType type = at_least_float32(t["data"]);
        t["mean"].meet(type);
        for (const size_t index : {1, 2}) t.output(index).meet(type);
      })
      .types_of<Convolution>();
}

OpDef define_norm_grad_from_sums(Op<BatchNormGradFromSums> op) {
  return with_batch_norm_fields(op)
      .inputs({"out_grad", "data", "gamma", "mean", "var", "grad_sum", "grad_away_sum"})
      .outputs({"data_grad", "gamma_grad", "beta_grad"})
      .infer_shape([](const BatchNormGradFromSums&, Shapes& s) {
        s.output(0).meet(s["data"]);
        s["out_grad"].meet(s["data"]);
        for (const char* input : {"grad_sum", "grad_away_sum"}) s[input].meet(s["gamma"]);
        for (const size_t index : {1, 2}) s.output(index).meet(s["gamma"]);
      })
      .shapes_of<BatchNorm>()
      .infer_type([](const BatchNormGradFromSums&, Types& t) {
        t.output(0).meet(t["data"]);
        t["out_grad"].meet(t["data"]);
        for (const char* input : {"grad_sum", "grad_away_sum"}) t[input].meet(t["gamma"]);
        for (const size_t index : {1, 2}) t.output(index).meet(t["gamma"]);
      })
      .types_of<BatchNorm>();
}

}  // namespace

Symbol network_of(const ConvolutionStatistics& p, const ComposedInputs& in) {
  const Symbol output = p.no_bias ? convolution({in[0], in[1]}, p) : convolution({in[0], in[1], in[2]}, p);
  const Symbol values = cast(output, {.dtype = in.output_types[1]});
  const Sum over_channels{.axis = Tuple{channel_axis(p, in.shapes[0].rank())}, .exclude = true};
  return Symbol::group({output, sum(values, over_channels), sum(square(values), over_channels)});
}

Symbol network_of(const ConvolutionGradAddRelu& p, const ComposedInputs& in) {
  const int rank = in.shapes[2].rank(), axis = channel_axis(p, rank);
  const Symbol arriving = convolution_grad_data({in[0], in[1], in[2]}, {p}) + in[3];
  const Symbol gradient = p.signs ? relu_signs_grad({arriving, in[4]}, {{axis}})
                                  : activation_grad({arriving, in[4]}, {{.act_type = act_type::relu}});
  Tuple per_channel(static_cast<size_t>(rank), 1);
  per_channel[static_cast<size_t>(axis)] = -1;
  const auto wide = [&](const Symbol& array) { return cast(array, {.dtype = in.output_types[1]}); };
  const Symbol values = wide(gradient), away = broadcast_sub(wide(in[5]), reshape(in[6], {.shape = per_channel}));
  const Sum over_channels{.axis = Tuple{axis}, .exclude = true};
  return Symbol::group({gradient, sum(values, over_channels), sum(values * away, over_channels)});
}

Symbol network_of(const BatchNormGradFromSums& p, const ComposedInputs& in) {
  const Symbol grads = batch_norm_grad({in[0], in[1], in[2], in[3], in[4]}, {p});
  return Symbol::group({grads[0], grads[1], grads[2]});
}

void register_conv_statistics(OpRegistry& registry) {
  add_internal(registry, "_Convolution_Statistics", define_statistics);
  add_internal(registry, "_backward_Convolution_Add_Relu", define_grad_add_relu);
  add_internal(registry, "_backward_BatchNorm_From_Sums", define_norm_grad_from_sums);
}

}  // namespace symbind
