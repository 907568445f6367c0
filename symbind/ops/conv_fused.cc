#include "symbind/ops/conv_fused.h"

#include "symbind/ops/activation.h"
#include "symbind/ops/conv_fields.h"
#include "symbind/ops/floating.h"

namespace symbind {
namespace {

Names input_names(const ConvolutionFused& p) {
  Names names{"data", "weight"};
  const auto add_norm = [&](const std::string& prefix) {
    for (const char* name : {"gamma", "beta", "moving_mean", "moving_var"}) names.push_back(prefix + name);
  };
  if (!p.no_bias) names.push_back("bias");
  if (p.norm_before) add_norm("before_");
  if (p.norm) add_norm("");
  if (p.sum) names.push_back("sum");
  return names;
}

int64_t channels_of(const ConvolutionFused& p, const Shape& data) {
  if (!data.rank_known()) return unknown_dim;
  return data[is_channels_last(p.layout) ? data.rank() - 1 : 1];
}

std::vector<std::string> activations() {
  std::vector<std::string> names(std::begin(act_type::all), std::end(act_type::all));
  names.emplace_back();
  return names;
}

void infer_types(const ConvolutionFused& p, Types& t) {
  auto data = t["data"], weight = t["weight"];
  data.meet(t.output());
  t.output().meet(data);
  if (p.sum) t["sum"].meet(data);
  if (!data.known()) return;
  require_floating(t, "data", data);
  if (!weight.known()) weight.meet(data);
  require(weight.get() == data.get() || (is_half(data) && weight.get() == DType::float32), t.where(),
          " weight must be of the type of data, or of float32 for 16 bits: data ", data.get(), ", weight ",
          weight.get());
  const ConvolutionFusedInputs at = inputs_of(p);
  if (at.bias >= 0) t["bias"].meet(weight);
  for (const int first : {at.norm_before, at.norm})
    for (int i = 0; first >= 0 && i < 4; ++i) t.input(static_cast<size_t>(first + i)).meet(at_least_float32(data));
}

OpDef define(Op<ConvolutionFused> op) {
  return with_convolution_fields(op)
      .doc("A convolution with BatchNorm, another array and an activation taken into it.")
      .param(&ConvolutionFused::norm_before, "norm_before", "a BatchNorm before the convolution")
      .param(&ConvolutionFused::norm_before_eps, "norm_before_eps", "its eps")
      .param(&ConvolutionFused::norm_before_fix_gamma, "norm_before_fix_gamma", "its fix_gamma")
      .param(&ConvolutionFused::norm, "norm", "apply a BatchNorm after the convolution")
      .param(&ConvolutionFused::norm_eps, "norm_eps", "its eps")
      .param(&ConvolutionFused::norm_fix_gamma, "norm_fix_gamma", "its fix_gamma")
      .param(&ConvolutionFused::sum, "sum", "add another array")
      .param(&ConvolutionFused::sum_is_spent, "sum_is_spent",
             "that array is not read afterwards, so the result may overwrite it")
      .param(&ConvolutionFused::act_type, "act_type", "the activation; empty: none", one_of(activations()))
      .inputs([](const ConvolutionFused& p) { return input_names(p); })
      .multiply_adds([](const ConvolutionFused&, auto in, auto out) { return products_with_weight(out[0], in[1]); })
      .infer_shape([](const ConvolutionFused& p, Shapes& s) {
        infer_convolution(p, s);
        const ConvolutionFusedInputs at = inputs_of(p);
        if (p.sum) s["sum"].meet(s.output());
        for (size_t i = 0; i < 4; ++i) {
          if (p.norm_before) s.input(static_cast<size_t>(at.norm_before) + i).meet({channels_of(p, s["data"])});
          if (p.norm) s.input(static_cast<size_t>(at.norm) + i).meet({p.num_filter});
        }
      })
      .infer_type([](const ConvolutionFused& p, Types& t) { infer_types(p, t); });
}

}  // namespace

ConvolutionFusedInputs inputs_of(const ConvolutionFused& p) {
  ConvolutionFusedInputs at;
  int next = 2;
  if (!p.no_bias) at.bias = next++;
  if (p.norm_before) at.norm_before = std::exchange(next, next + 4);
  if (p.norm) at.norm = std::exchange(next, next + 4);
  if (p.sum) at.sum = next;
  return at;
}

std::vector<int> folded_inputs(const ConvolutionFused& p) {
  const ConvolutionFusedInputs at = inputs_of(p);
  std::vector<int> inputs{1};
  if (at.bias >= 0) inputs.push_back(at.bias);
  for (const int first : {at.norm_before, at.norm})
    for (int i = 0; first >= 0 && i < 4; ++i) inputs.push_back(first + i);
  return inputs;
}

void register_conv_fused(OpRegistry& registry) { add_internal(registry, "_Convolution_Fused", define); }

}  // namespace symbind
