#include "symbind/ops/optimizer.h"

#include "symbind/ops/update.h"

namespace symbind {
namespace {

template <class P>
Op<P>& add_sgd(Op<P>& op, Names states, StateTypes types = StateTypes::as_weight) {
  add_lazy(add_decay_and_scaling(add_rate(op)));
  return add_update_inputs(op, std::move(states), types);
}

template <class P>
Op<P>& add_sgd_with_momentum(Op<P>& op, Names states, StateTypes types = StateTypes::as_weight) {
  add_lazy(add_decay_and_scaling(add_momentum(add_rate(op))));
  return add_update_inputs(op, std::move(states), types);
}

template <class P>
Op<P>& add_nag(Op<P>& op, Names states, StateTypes types = StateTypes::as_weight) {
  add_decay_and_scaling(add_momentum(add_rate(op)));
  return add_update_inputs(op, std::move(states), types);
}

OpDef define(Op<SgdUpdate> op) {
  return add_sgd(op, {}).doc(
      "Stochastic gradient descent: weight - lr · (grad + wd · weight), after rescaling and clipping grad. All arrays "
      "have the shape of weight.");
}

OpDef define(Op<MpSgdUpdate> op) {
  return add_sgd(op, {"weight32"}, StateTypes::float32)
      .doc(
          "sgd_update in mixed precision: the update is applied to weight32, the float32 copy of a 16-bit weight, and "
          "the output is weight32 rounded to the type of weight.");
}

OpDef define(Op<SgdMomUpdate> op) {
  return add_sgd_with_momentum(op, {"mom"})
      .doc(
          "Gradient descent with momentum: mom = momentum · mom - lr · (grad + wd · weight); the output is weight + "
          "mom. All arrays have the shape of weight; mom is updated in place.");
}

OpDef define(Op<MpSgdMomUpdate> op) {
  return add_sgd_with_momentum(op, {"mom", "weight32"}, StateTypes::float32)
      .doc(
          "sgd_mom_update in mixed precision: the update is applied to weight32, the float32 copy of a 16-bit weight, "
          "and the output is weight32 rounded to the type of weight.");
}

OpDef define(Op<NagMomUpdate> op) {
  return add_nag(op, {"mom"})
      .doc(
          "Nesterov's momentum: m = momentum · mom - lr · (grad + wd · weight); the output is weight + m + momentum · "
          "(m - mom), and mom becomes m with the decay of the new weight.");
}

OpDef define(Op<MpNagMomUpdate> op) {
  return add_nag(op, {"mom", "weight32"}, StateTypes::float32)
      .doc(
          "nag_mom_update in mixed precision: the update is applied to weight32, the float32 copy of a 16-bit weight, "
          "and the output is weight32 rounded to the type of weight.");
}

OpDef define(Op<SignsgdUpdate> op) {
  add_decay_and_scaling(add_rate(op));
  return add_update_inputs(op, {}).doc("SignSGD: (1 - lr · wd) · weight - lr · sign(grad).");
}

OpDef define(Op<SignumUpdate> op) {
  add_decay_and_scaling(add_momentum(add_rate(op)));
  op.param(&SignumUpdate::wd_lh, "wd_lh",
           "decoupled weight decay: lr · wd_lh · weight is subtracted from the weight and does not enter the momentum");
  return add_update_inputs(op, {"mom"})
      .doc(
          "Signum: mom = momentum · mom - (1 - momentum) · (grad + wd · weight); the output is (1 - lr · wd_lh) · "
          "weight + lr · sign(mom).");
}

OpDef define(Op<DcasgdUpdate> op) {
  add_decay_and_scaling(add_momentum(add_rate(op)));
  op.param(&DcasgdUpdate::lamda, "lamda", "factor of the delay compensation, grad² · (weight - previous)");
  return add_update_inputs(op, {"mom", "previous"})
      .doc(
          "Delay-compensated SGD: mom = momentum · mom - lr · (grad + wd · weight + lamda · grad² · (weight - "
          "previous)); the output is weight + mom.");
}

OpDef define(Op<SgldUpdate> op) {
  add_decay_and_scaling(add_rate(op));
  return add_update_inputs(op, {}).random().doc(
      "Stochastic gradient Langevin dynamics: weight - lr / 2 · (grad + wd · weight) + normal noise of variance lr.");
}

}  // namespace

void register_optimizer(OpRegistry& registry) {
  add<SgdUpdate>(registry, "sgd_update", define);
  add<SgdMomUpdate>(registry, "sgd_mom_update", define);
  add<MpSgdUpdate>(registry, "mp_sgd_update", define);
  add<MpSgdMomUpdate>(registry, "mp_sgd_mom_update", define);
  add<NagMomUpdate>(registry, "nag_mom_update", define);
  add<MpNagMomUpdate>(registry, "mp_nag_mom_update", define);
  add<SignsgdUpdate>(registry, "signsgd_update", define);
  add<SignumUpdate>(registry, "signum_update", define);
  add_internal<DcasgdUpdate>(registry, "_dcasgd_update", define);
  add_internal<SgldUpdate>(registry, "_sgld_update", define);
}

}  // namespace symbind
