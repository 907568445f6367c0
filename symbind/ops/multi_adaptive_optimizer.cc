#include "symbind/ops/multi_adaptive_optimizer.h"

#include "symbind/ops/multi_update.h"

namespace symbind {
namespace {

constexpr const char* epsilon_text = "small constant added to the divisor, so that it is never 0";
constexpr const char* decay_text =
    "decoupled weight decay: wd · weight is subtracted from the weight and is no part of the gradient";
constexpr const char* clip_text =
    "each element of the rescaled gradient is clipped to [-clip_gradient, clip_gradient]; a value below 0 turns "
    "clipping off";

// ---- AdamW ----------------------------------------------------------------------------------------------------------

template <class P>
Op<P>& add_adamw(Op<P>& op, Names states, size_t of_one_type) {
  add_betas(add_rate(op))
      .param(&P::epsilon, "epsilon", epsilon_text)
      .param(&P::wd, "wd", decay_text)
      .param(&P::eta, "eta", "schedule multiplier of the whole update, step and weight decay")
      .param(&P::clip_gradient, "clip_gradient", clip_text);
  const size_t arrays = 2 + states.size();
  Names inputs{"weight", "grad"};
  inputs.insert(inputs.end(), states.begin(), states.end());
  inputs.push_back("rescale_grad");
  return op.inputs(inputs)
      .also_updates([arrays](const P&, size_t input) { return input >= 2 && input < arrays; })
      .infer_shape([arrays](const P&, Shapes& s) {
        for (size_t i = 0; i < arrays; ++i) s.output().meet(s.input(i));
        for (size_t i = 0; i < arrays; ++i) s.input(i).meet(s.output());
        s.input(arrays).meet(Shape{1});
      })
      .infer_type([of_one_type](const P&, Types& t) { types_with_master(t, of_one_type); });
}

constexpr const char* adamw_text =
    "Adam with decoupled weight decay: mean = beta1 · mean + (1 - beta1) · grad, var = beta2 · var + (1 - beta2) · "
    "grad²; the output is weight - eta · (lr · mean / (√var + epsilon) + wd · weight). The gradient is multiplied by "
    "rescale_grad, an array of one element, first; where that is 0 or not finite, nothing changes.";

OpDef define(Op<AdamWUpdate> op) { return add_adamw(op, {"mean", "var"}, 4).doc(adamw_text); }

OpDef define(Op<MpAdamWUpdate> op) {
  return add_adamw(op, {"mean", "var", "weight32"}, 2)
      .doc(
          "_adamw_update in mixed precision: mean, var and weight32, the copy of a 16-bit weight that is updated, are "
          "float32; the output is weight32 rounded to the type of weight.");
}

template <class P>
Op<P>& add_multi_adamw(Op<P>& op, Names each, bool float32_states) {
  op.param(&P::lrs, "lrs", "learning rate of each weight; num_weights numbers");
  add_betas(op)
      .param(&P::epsilon, "epsilon", epsilon_text)
      .param(&P::wds, "wds", "decoupled weight decay of each weight; num_weights numbers")
      .param(&P::etas, "etas", "schedule multiplier of each weight's whole update; num_weights numbers")
      .param(&P::clip_gradient, "clip_gradient", clip_text);
  add_num_weights(op).check([](P& p) {
    require_one_each("lrs", p.lrs.size(), p.num_weights);
    require_one_each("wds", p.wds.size(), p.num_weights);
    require_one_each("etas", p.etas.size(), p.num_weights);
  });
  return add_multi_inputs(op, static_cast<int64_t P::*>(&MultiAdamWUpdate::num_weights),
                          {std::move(each), {"rescale_grad"}, float32_states}, [](const P&) { return Shape{1}; });
}

OpDef define(Op<MultiAdamWUpdate> op) {
  return add_multi_adamw(op, {"weight", "grad", "mean", "var"}, false)
      .doc(
          "_adamw_update of num_weights weights in one call. The inputs are weight, grad, mean and var, weight after "
          "weight, then rescale_grad of shape (1); there is one output per weight.");
}

OpDef define(Op<MultiMpAdamWUpdate> op) {
  return add_multi_adamw(op, {"weight", "grad", "mean", "var", "weight32"}, true)
      .doc(
          "_mp_adamw_update of num_weights weights in one call. The inputs are weight, grad, mean, var and weight32, "
          "weight after weight, then rescale_grad of shape (1); there is one output per weight.");
}

// ---- LAMB -----------------------------------------------------------------------------------------------------------

template <class P>
Op<P>& add_multi_lamb(Op<P>& op, Names each, bool float32_states) {
  op.param(&P::learning_rates, "learning_rates", "learning rate of each weight; num_tensors numbers");
  add_betas(op)
      .param(&P::epsilon, "epsilon", epsilon_text)
      .param(&P::wds, "wds", "weight decay of each weight, added to the direction; num_tensors numbers")
      .param(&P::rescale_grad, "rescale_grad", "factor of the gradient, applied first; 1 / batch size, say")
      .param(&P::lower_bound, "lower_bound", "lower bound of the norm of a weight; a value below 0 means no bound")
      .param(&P::upper_bound, "upper_bound", "upper bound of the norm of a weight; a value below 0 means no bound")
      .param(&P::clip_gradient, "clip_gradient", clip_text)
      .param(&P::bias_correction, "bias_correction", "divide the running means by 1 - beta^t, since they start at 0")
      .param(&P::step_count, "step_count", "number of this update of each weight, counted from 1; num_tensors numbers")
      .param(&P::num_tensors, "num_tensors", "number of weights that are updated", at_least(1))
      .check([](P& p) {
        require_one_each("learning_rates", p.learning_rates.size(), p.num_tensors);
        require_one_each("wds", p.wds.size(), p.num_tensors);
        require_one_each("step_count", p.step_count.size(), p.num_tensors);
        for (const int64_t count : p.step_count.get())
          require(count >= 1 || !p.bias_correction,
                  "step_count must hold numbers of at least 1 (or bias_correction=False): ", print(p.step_count.get()));
      });
  return add_multi_inputs(op, static_cast<int64_t P::*>(&MultiLambUpdate::num_tensors),
                          {std::move(each), {}, float32_states});
}

OpDef define(Op<MultiLambUpdate> op) {
  return add_multi_lamb(op, {"weight", "grad", "mean", "var"}, false)
      .doc(
          "LAMB updates of num_tensors weights in one call, with the norms in between: weight - lr · |weight| / "
          "|direction| · direction, where direction is the output of lamb_update_phase1. The inputs are weight, grad, "
          "mean and var, weight after weight; there is one output per weight.");
}

OpDef define(Op<MultiMpLambUpdate> op) {
  return add_multi_lamb(op, {"weight", "grad", "mean", "var", "weight32"}, true)
      .doc(
          "_multi_lamb_update in mixed precision. The inputs are weight, grad, mean, var and weight32, the float32 "
          "copy of a 16-bit weight that is updated, weight after weight; there is one output per weight.");
}

}  // namespace

void register_multi_adaptive_optimizer(OpRegistry& registry) {
  add<AdamWUpdate>(registry, "_adamw_update", define);
  add<MpAdamWUpdate>(registry, "_mp_adamw_update", define);
  add<MultiAdamWUpdate>(registry, "_multi_adamw_update", define);
  add<MultiMpAdamWUpdate>(registry, "_multi_mp_adamw_update", define);
  add<MultiLambUpdate>(registry, "_multi_lamb_update", define);
  add<MultiMpLambUpdate>(registry, "_multi_mp_lamb_update", define);
}

}  // namespace symbind
