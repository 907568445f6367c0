#include "symbind/ops/adaptive_optimizer.h"

#include "symbind/ops/update.h"

namespace symbind {
namespace {

template <class P>
Op<P>& add_epsilon(Op<P>& op) {
  return op.param(&P::epsilon, "epsilon", "keeps a divisor away from 0");
}

OpDef define(Op<AdamUpdate> op) {
  add_lazy(add_decay_and_scaling(add_epsilon(add_betas(add_rate(op)))));
  return add_update_inputs(op, {"mean", "var"})
      .doc(
          "mean and var run after grad and grad², where grad includes wd · weight before it is clipped; "
          "weight - lr · mean / (√var + epsilon).");
}

OpDef define(Op<AdamWUpdate> op) {
  add_scaling(add_epsilon(add_betas(add_rate(op)))
                  .param(&AdamWUpdate::wd, "wd", "weight decay: how much of the weight is taken off beside the step")
                  .param(&AdamWUpdate::eta, "eta", "multiplies the step and the decay"));
  return add_update_inputs(op, {"mean", "var"})
      .doc(
          "mean and var run after grad and grad²; "
          "weight - eta · (lr · mean / (√var + epsilon) + wd · weight).");
}

OpDef define(Op<AdamaxUpdate> op) {
  add_decay_and_scaling(add_betas(add_rate(op)));
  return add_update_inputs(op, {"mean", "largest"})
      .doc("mean runs after grad, largest = max(beta2 · largest, |grad|); weight - lr · mean / largest.");
}

OpDef define(Op<NadamUpdate> op) {
  add_decay_and_scaling(add_epsilon(add_betas(add_rate(op))));
  op.param(&NadamUpdate::grad_share, "grad_share", "the gradient's part of the step")
      .param(&NadamUpdate::mean_share, "mean_share", "the running mean's part of the step")
      .param(&NadamUpdate::square_correction, "square_correction", "1 - beta2^t");
  return add_update_inputs(op, {"mean", "var"})
      .doc(
          "Adam with Nesterov's momentum: weight - lr · (grad_share · grad + mean_share · mean) / "
          "(√(var / square_correction) + epsilon).");
}

OpDef define(Op<FtmlUpdate> op) {
  add_epsilon(add_betas(add_rate(op)))
      .param(&FtmlUpdate::t, "t", "number of this update, from 1", at_least(1))
      .param(&FtmlUpdate::wd, "wd", "weight decay: how much of the weight is added to the gradient")
      .param(&FtmlUpdate::rescale_grad, "rescale_grad", "the gradient is multiplied by this first")
      .param(&FtmlUpdate::clip_grad, "clip_grad", "then cut to [-clip_grad, clip_grad]; below 0: not at all");
  return add_update_inputs(op, {"d", "v", "z"})
      .doc(
          "Follow the moving leader: d' = (1 - beta1^t) / lr · (√(v / (1 - beta2^t)) + epsilon), "
          "z runs after grad - (d' - beta1 · d) / (1 - beta1) · weight; -z / d'.");
}

OpDef define(Op<FtrlUpdate> op) {
  add_decay_and_scaling(add_rate(op)
                            .param(&FtrlUpdate::lamda1, "lamda1", "below this a weight is 0")
                            .param(&FtrlUpdate::beta, "beta", "slows the first steps down"));
  return add_update_inputs(op, {"z", "n"})
      .doc(
          "z += grad - (√(n + grad²) - √n) / lr · weight; n += grad²; "
          "(sign(z) · lamda1 - z) / ((beta + √n) / lr + wd) where |z| > lamda1, else 0.");
}

template <class P>
Op<P>& add_rmsprop(Op<P>& op) {
  add_rate(op).param(&P::gamma1, "gamma1", "how much of the running square is kept");
  add_decay_and_scaling(add_epsilon(op));
  return op.param(&P::clip_weights, "clip_weights",
                  "the weight is cut to [-clip_weights, clip_weights]; below 0: not at all");
}

OpDef define(Op<RmspropUpdate> op) {
  return add_update_inputs(add_rmsprop(op), {"n"}).doc("n runs after grad²; weight - lr · grad / √(n + epsilon).");
}

OpDef define(Op<RmspropalexUpdate> op) {
  add_rmsprop(op).param(&RmspropalexUpdate::gamma2, "gamma2", "how much of the last step is kept");
  return add_update_inputs(op, {"n", "g", "delta"})
      .doc(
          "n and g run after grad² and grad; delta = gamma2 · delta - lr · grad / √(n - g² + epsilon); weight + "
          "delta.");
}

OpDef define(Op<AdagradUpdate> op) {
  add_decay_and_scaling(add_epsilon(add_rate(op)));
  return add_update_inputs(op, {"history"})
      .doc("history += grad²; weight - lr · (grad / √(history + epsilon) + wd · weight).");
}

OpDef define(Op<GroupAdagradUpdate> op) {
  add_scaling(add_epsilon(add_rate(op)));
  return add_update_inputs(op, {"history"})
      .doc("history += mean of grad² over each row; weight - lr · grad / √(history + epsilon).")
      .infer_shape([](const GroupAdagradUpdate&, Shapes& s) {
        s["weight"].meet(s["grad"]);
        s["weight"].meet(s.output());
        s["grad"].meet(s["weight"]);
        if (!s["weight"].rank_known()) return;
        require(s["weight"].rank() == 2, s.where(), " weight must be a matrix: ", s["weight"].get());
        s["history"].meet(Shape{s["weight"][0], 1});
      });
}

OpDef define(Op<AdadeltaUpdate> op) {
  add_decay_and_scaling(add_epsilon(op.param(&AdadeltaUpdate::rho, "rho", "how much of the running squares is kept")));
  return add_update_inputs(op, {"acc_g", "acc_delta"})
      .doc(
          "acc_g runs after grad², delta = √((acc_delta + epsilon) / (acc_g + epsilon)) · grad, acc_delta after "
          "delta²; weight - delta - wd · weight.");
}

template <class P>
Op<P>& add_phase1(Op<P>& op) {
  add_epsilon(add_betas(op))
      .param(&P::t, "t", "number of this update, from 1", at_least(1))
      .param(&P::bias_correction, "bias_correction", "make up for the running means' start at 0");
  return add_decay_and_scaling(op);
}

OpDef define(Op<LambUpdatePhase1> op) {
  return add_update_inputs(add_phase1(op), {"mean", "var"})
      .doc("The direction of a LAMB step: mean / (√var + epsilon) + wd · weight.");
}

OpDef define(Op<MpLambUpdatePhase1> op) {
  return add_phase1(op)
      .inputs({"weight", "grad"})
      .aux({"mean", "var", "weight32"})
      .doc("lamb_update_phase1 of weight32, the float32 copy of a 16-bit weight.")
      .infer_type([](const MpLambUpdatePhase1&, Types& t) {
        t["grad"].meet(t["weight"]);
        t["weight"].meet(t["grad"]);
        for (size_t i = 2; i < t.inputs(); ++i) t.input(i).meet(DType::float32);
        t.output().meet(DType::float32);
      });
}

template <class P>
Op<P>& add_phase2(Op<P>& op) {
  return add_rate(op)
      .param(&P::lower_bound, "lower_bound", "the least r1 counts as; below 0: no bound")
      .param(&P::upper_bound, "upper_bound", "the most r1 counts as; below 0: no bound")
      .inputs({"weight", "g", "r1", "r2"})
      .infer_shape([](const P&, Shapes& s) {
        s["weight"].meet(s["g"]);
        s["weight"].meet(s.output());
        s["g"].meet(s["weight"]);
        s.output().meet(s["weight"]);
        s["r1"].meet(Shape{1});
        s["r2"].meet(Shape{1});
        if (s.inputs() > 4) s.input(4).meet(s["weight"]);
      });
}

OpDef define(Op<LambUpdatePhase2> op) {
  return add_phase2(op)
      .doc("weight - lr · r1 / r2 · g, where a norm of 0 counts as a ratio of 1.")
      .infer_type([](const LambUpdatePhase2&, Types& t) { types_with_master(t, t.inputs()); });
}

OpDef define(Op<MpLambUpdatePhase2> op) {
  return add_phase2(op)
      .aux({"weight32"})
      .doc("lamb_update_phase2 of weight32, the float32 copy of a 16-bit weight; the result is rounded from it.")
      .infer_type([](const MpLambUpdatePhase2&, Types& t) { types_with_master(t, 1); });
}

}  // namespace

void register_adaptive_optimizer(OpRegistry& registry) {
  add<AdamUpdate>(registry, "adam_update", define);
  add<AdamWUpdate>(registry, "_adamw_update", define);
  add_internal<AdamaxUpdate>(registry, "_adamax_update", define);
  add_internal<NadamUpdate>(registry, "_nadam_update", define);
  add<FtmlUpdate>(registry, "ftml_update", define);
  add<FtrlUpdate>(registry, "ftrl_update", define);
  add<RmspropUpdate>(registry, "rmsprop_update", define);
  add<RmspropalexUpdate>(registry, "rmspropalex_update", define);
  add_internal<AdagradUpdate>(registry, "_adagrad_update", define);
  add<GroupAdagradUpdate>(registry, "_contrib_group_adagrad_update", define);
  add_internal<AdadeltaUpdate>(registry, "_adadelta_update", define);
  add<LambUpdatePhase1>(registry, "lamb_update_phase1", define);
  add<LambUpdatePhase2>(registry, "lamb_update_phase2", define);
  add<MpLambUpdatePhase1>(registry, "mp_lamb_update_phase1", define);
  add<MpLambUpdatePhase2>(registry, "mp_lamb_update_phase2", define);
}

}  // namespace symbind
