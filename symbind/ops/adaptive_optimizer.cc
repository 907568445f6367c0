#include "symbind/ops/adaptive_optimizer.h"

#include "symbind/ops/update.h"

namespace symbind {
namespace {

template <class P>
Op<P>& add_epsilon(Op<P>& op) {
  return op.param(&P::epsilon, "epsilon", "small constant added to the divisor, so that it is never 0");
}

OpDef define(Op<AdamUpdate> op) {
  add_lazy(add_decay_and_scaling(add_epsilon(add_betas(add_rate(op)))));
  return add_update_inputs(op, {"mean", "var"})
      .doc(
          "Adam: mean = beta1 · mean + (1 - beta1) · grad, var = beta2 · var + (1 - beta2) · grad²; the output is "
          "weight - lr · mean / (√var + epsilon). grad includes wd · weight before it is clipped; lr includes the bias "
          "corrections.");
}

OpDef define(Op<AdamWStep> op) {
  add_scaling(
      add_epsilon(add_betas(add_rate(op)))
          .param(&AdamWStep::wd, "wd",
                 "decoupled weight decay: wd · weight is subtracted from the weight and is no part of the gradient")
          .param(&AdamWStep::eta, "eta", "schedule multiplier of the whole update, step and weight decay"));
  return add_update_inputs(op, {"mean", "var"})
      .doc(
          "Adam with decoupled weight decay: mean = beta1 · mean + (1 - beta1) · grad, var = beta2 · var + (1 - beta2) "
          "· grad²; the output is weight - eta · (lr · mean / (√var + epsilon) + wd · weight).");
}

OpDef define(Op<AdamaxUpdate> op) {
  add_decay_and_scaling(add_betas(add_rate(op)));
  return add_update_inputs(op, {"mean", "largest"})
      .doc(
          "Adamax: mean = beta1 · mean + (1 - beta1) · grad, largest = max(beta2 · largest, |grad|); the output is "
          "weight - lr · mean / largest, and weight where every gradient so far was 0.");
}

OpDef define(Op<NadamUpdate> op) {
  add_decay_and_scaling(add_epsilon(add_betas(add_rate(op))));
  op.param(&NadamUpdate::grad_share, "grad_share", "factor of the gradient in the step")
      .param(&NadamUpdate::mean_share, "mean_share", "factor of the running mean in the step")
      .param(&NadamUpdate::square_correction, "square_correction",
             "1 - beta2^t: the bias correction of the running mean of squares");
  return add_update_inputs(op, {"mean", "var"})
      .doc(
          "Adam with Nesterov's momentum: weight - lr · (grad_share · grad + mean_share · mean) / (√(var / "
          "square_correction) + epsilon).");
}

OpDef define(Op<FtmlUpdate> op) {
  add_epsilon(add_betas(add_rate(op)))
      .param(&FtmlUpdate::t, "t", "number of this update, counted from 1; the bias corrections depend on it",
             at_least(1))
      .param(&FtmlUpdate::wd, "wd", "weight decay: wd · weight is added to the gradient")
      .param(&FtmlUpdate::rescale_grad, "rescale_grad", "factor of the gradient, applied first; 1 / batch size, say")
      .param(&FtmlUpdate::clip_grad, "clip_grad",
             "each element of the rescaled gradient is clipped to [-clip_grad, clip_grad]; a value below 0 turns "
             "clipping off");
  return add_update_inputs(op, {"d", "v", "z"})
      .doc(
          "Follow the moving leader (FTML): v = beta2 · v + (1 - beta2) · grad²; d' = (1 - beta1^t) / lr · (√(v / (1 - "
          "beta2^t)) + epsilon); z = beta1 · z + (1 - beta1) · grad - (d' - beta1 · d) · weight; the output is -z / "
          "d', and d becomes d'.");
}

OpDef define(Op<FtrlUpdate> op) {
  add_decay_and_scaling(
      add_rate(op)
          .param(&FtrlUpdate::lamda1, "lamda1", "L1 regularisation: a weight is set to 0 while |z| is at most lamda1")
          .param(&FtrlUpdate::beta, "beta",
                 "added to √n in the divisor of the step: a larger beta makes the first steps smaller"));
  return add_update_inputs(op, {"z", "n"})
      .doc(
          "Follow the regularized leader (FTRL): z += grad - (√(n + grad²) - √n) / lr · weight; n += grad²; the output "
          "is (sign(z) · lamda1 - z) / ((beta + √n) / lr + wd) where |z| > lamda1, else 0.");
}

template <class P>
Op<P>& add_rmsprop(Op<P>& op) {
  add_rate(op).param(&P::gamma1, "gamma1", "decay rate of the running mean of the squared gradient, in [0, 1)");
  add_decay_and_scaling(add_epsilon(op));
  return op.param(
      &P::clip_weights, "clip_weights",
      "each element of the new weight is clipped to [-clip_weights, clip_weights]; a value below 0 turns clipping off");
}

OpDef define(Op<RmspropUpdate> op) {
  return add_update_inputs(add_rmsprop(op), {"n"})
      .doc("RMSProp: n = gamma1 · n + (1 - gamma1) · grad²; the output is weight - lr · grad / √(n + epsilon).");
}

OpDef define(Op<RmspropalexUpdate> op) {
  add_rmsprop(op).param(&RmspropalexUpdate::gamma2, "gamma2",
                        "momentum: the fraction of the previous step that is added to this one, in [0, 1)");
  return add_update_inputs(op, {"n", "g", "delta"})
      .doc(
          "Centred RMSProp: n and g are running means of grad² and grad with decay rate gamma1; delta = gamma2 · delta "
          "- lr · grad / √(n - g² + epsilon); the output is weight + delta.");
}

OpDef define(Op<AdagradUpdate> op) {
  add_decay_and_scaling(add_epsilon(add_rate(op)));
  return add_update_inputs(op, {"history"})
      .doc("AdaGrad: history += grad²; the output is weight - lr · (grad / √(history + epsilon) + wd · weight).");
}

OpDef define(Op<GroupAdagradUpdate> op) {
  add_scaling(add_epsilon(add_rate(op)));
  return add_update_inputs(op, {"history"})
      .doc(
          "AdaGrad with one history per row: history += mean of grad² over each row; the output is weight - lr · grad "
          "/ √(history + epsilon). weight is a matrix (rows, columns), history (rows, 1).")
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
  add_decay_and_scaling(
      add_epsilon(op.param(&AdadeltaUpdate::rho, "rho", "decay rate of both running means of squares, in [0, 1)")));
  return add_update_inputs(op, {"acc_g", "acc_delta"})
      .doc(
          "AdaDelta: acc_g is the running mean of grad²; delta = √((acc_delta + epsilon) / (acc_g + epsilon)) · grad; "
          "acc_delta is the running mean of delta²; the output is weight - delta - wd · weight.");
}

template <class P>
Op<P>& add_phase1(Op<P>& op) {
  add_epsilon(add_betas(op))
      .param(&P::t, "t", "number of this update, counted from 1; only the bias corrections depend on it")
      .param(&P::bias_correction, "bias_correction", "divide the running means by 1 - beta^t, since they start at 0")
      .check([](P& p) {
        require(p.t >= 1 || !p.bias_correction, "t must be at least 1 (or bias_correction=False): ", p.t.get());
      });
  return add_decay_and_scaling(op);
}

OpDef define(Op<LambUpdatePhase1> op) {
  return add_update_inputs(add_phase1(op), {"mean", "var"})
      .doc(
          "First phase of a LAMB update: updates the running means and returns the direction of the step, mean / (√var "
          "+ epsilon) + wd · weight.");
}

OpDef define(Op<MpLambUpdatePhase1> op) {
  return add_phase1(op)
      .inputs({"weight", "grad"})
      .aux({"mean", "var", "weight32"})
      .doc(
          "lamb_update_phase1 in mixed precision: computed from weight32, the float32 copy of a 16-bit weight; the "
          "output is float32.")
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
      .param(&P::lower_bound, "lower_bound",
             "lower bound of r1, the norm of the weight; a value below 0 means no bound")
      .param(&P::upper_bound, "upper_bound",
             "upper bound of r1, the norm of the weight; a value below 0 means no bound")
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
      .doc(
          "Second phase of a LAMB update: weight - lr · r1 / r2 · g, where g is the output of lamb_update_phase1, r1 "
          "the norm of weight and r2 the norm of g, both of shape (1). The ratio is 1 where a norm is 0.")
      .infer_type([](const LambUpdatePhase2&, Types& t) { types_with_master(t, t.inputs()); });
}

OpDef define(Op<MpLambUpdatePhase2> op) {
  return add_phase2(op)
      .aux({"weight32"})
      .doc(
          "lamb_update_phase2 in mixed precision: the update is applied to weight32, the float32 copy of a 16-bit "
          "weight, and the output is weight32 rounded to the type of weight.")
      .infer_type([](const MpLambUpdatePhase2&, Types& t) { types_with_master(t, 1); });
}

}  // namespace

void register_adaptive_optimizer(OpRegistry& registry) {
  add<AdamUpdate>(registry, "adam_update", define);
  add_internal<AdamWStep>(registry, "_adamw_step", define);
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
