#include "symbind/ops/batch_norm_recompute.h"

#include "symbind/graph/define.h"
#include "symbind/ops/activation.h"
#include "symbind/ops/elementwise.h"
#include "symbind/ops/floating.h"

namespace symbind {
namespace {

OpDef define_norm(Op<BatchNormRecompute> op) {
  return op.doc("BatchNorm with given statistics: (data - mean) · var · gamma + beta along the channel axis.")
      .param(&BatchNormRecompute::fix_gamma, "fix_gamma", "take gamma as one")
      .param(&BatchNormRecompute::axis, "axis", "axis of the channels; negative ones count from the end")
      .param(&BatchNormRecompute::relu, "relu", "set what is below zero to zero")
      .inputs({"data", "gamma", "beta", "mean", "var"})
      .infer_shape([](const BatchNormRecompute& p, Shapes& s) {
        auto data = s["data"];
        data.meet(s.output());
        if (!data.rank_known()) return;
        const int axis = data.get().axis(p.axis, join(s.where(), " axis"));
        for (const char* input : {"gamma", "beta", "mean", "var"}) s[input].meet({data[axis]});
        s.output().meet(data.get());
      })
      .infer_type([](const BatchNormRecompute&, Types& t) {
        t["data"].meet(t.output());
        t.output().meet(t["data"]);
        require_floating(t, "data", t["data"]);
        require_floating(t, "gamma", t["gamma"]);
        for (const char* input : {"beta", "mean", "var"}) t[input].meet(t["gamma"]);
      });
}

OpDef define_norm_add_relu(Op<BatchNormAddReluRecompute> op) {
  using P = BatchNormAddReluRecompute;
  const auto infer = [](const P& p, auto& all) {
    const std::string added = p.pair ? "other_data" : "sum";
    all.output().meet(all["data"]);
    for (size_t i = 0; i < all.inputs(); ++i)
      if (const std::string& name = all.input_name(i); name != "data" && name != "gamma")
        all.input(i).meet(all[name == added ? "data" : "gamma"]);
  };
  return op.doc("ReLU of the sum of a BatchNorm with given statistics and an array, or another such BatchNorm.")
      .param(&P::fix_gamma, "fix_gamma", "take gamma as one")
      .param(&P::axis, "axis", "axis of the channels; negative ones count from the end")
      .param(&P::pair, "pair", "add another BatchNorm instead of an array")
      .inputs([](const P& p) {
        return p.pair ? Names{"data",       "gamma", "beta", "other_data", "other_gamma",
                              "other_beta", "mean",  "var",  "other_mean", "other_var"}
                      : Names{"data", "gamma", "beta", "sum", "mean", "var"};
      })
      .infer_shape([infer](const P& p, Shapes& s) {
        if (!s["data"].known()) return;
        s["gamma"].meet({s["data"][s["data"].get().axis(p.axis, join(s.where(), " axis"))]});
        infer(p, s);
      })
      .infer_type([infer](const P& p, Types& t) {
        require_floating(t, "data", t["data"]);
        require_floating(t, "gamma", t["gamma"]);
        infer(p, t);
      });
}

}  // namespace

Symbol network_of(const BatchNormReluGradOutput& p, const ComposedInputs& in) {
  std::vector<Symbol> inputs;
  for (size_t i = 0; i < (p.with_sum ? 7 : 6); ++i) inputs.push_back(in[i]);
  const Symbol grads = batch_norm_relu_grad(inputs, p);
  const BatchNormRecompute norm{.fix_gamma = p.fix_gamma, .axis = p.axis, .relu = true};
  return Symbol::group({grads[0], grads[1], grads[2], batch_norm_recompute({in[1], in[2], in[3], in[4], in[5]}, norm)});
}

Symbol network_of(const BatchNormAddReluRecompute& p, const ComposedInputs& in) {
  const BatchNormRecompute norm{.fix_gamma = p.fix_gamma, .axis = p.axis};
  const size_t mean = p.pair ? 6 : 4;
  Symbol sum = batch_norm_recompute({in[0], in[1], in[2], in[mean], in[mean + 1]}, norm);
  sum = sum + (p.pair ? batch_norm_recompute({in[3], in[4], in[5], in[8], in[9]}, norm) : in[3]);
  return activation(sum, {.act_type = act_type::relu});
}

Recomputation recompute_norm(const BatchNorm& p, bool relu) {
  return recompute_by(BatchNormRecompute{.fix_gamma = p.fix_gamma, .axis = p.axis, .relu = relu}, {0, 1, 2}, {1, 2});
}

Recomputation recompute_norm_add_relu(const BatchNorm& p, int sum) {
  return recompute_by(BatchNormAddReluRecompute{.fix_gamma = p.fix_gamma, .axis = p.axis}, {0, 1, 2, sum}, {1, 2});
}

void register_batch_norm_recompute(OpRegistry& registry) {
  add_internal<BatchNormRecompute>(registry, "_BatchNorm_recompute", define_norm);
  add_internal<BatchNormAddReluRecompute>(registry, "_BatchNorm_Add_Relu_recompute", define_norm_add_relu);
}

}  // namespace symbind
