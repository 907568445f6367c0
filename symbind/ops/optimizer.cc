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
  return add_sgd(op, {}).doc("weight - lr · (grad + wd · weight), after scaling and clipping the gradient.");
}

OpDef define(Op<MpSgdUpdate> op) {
  return add_sgd(op, {"weight32"}, StateTypes::float32)
      .doc("sgd_update of weight32, the float32 copy of a 16-bit weight; the result is rounded from it.");
}

OpDef define(Op<SgdMomUpdate> op) {
  return add_sgd_with_momentum(op, {"mom"}).doc("mom = momentum · mom - lr · (grad + wd · weight); weight + mom.");
}

OpDef define(Op<MpSgdMomUpdate> op) {
  return add_sgd_with_momentum(op, {"mom", "weight32"}, StateTypes::float32)
      .doc("sgd_mom_update of weight32, the float32 copy of a 16-bit weight; the result is rounded from it.");
}

OpDef define(Op<NagMomUpdate> op) {
  return add_nag(op, {"mom"})
      .doc(
          "m = momentum · mom - lr · (grad + wd · weight); the new weight is weight + m + momentum · "
          "(m - mom), and mom becomes m with the decay of the new weight.");
}

OpDef define(Op<MpNagMomUpdate> op) {
  return add_nag(op, {"mom", "weight32"}, StateTypes::float32)
      .doc("nag_mom_update of weight32, the float32 copy of a 16-bit weight; the result is rounded from it.");
}

OpDef define(Op<SignsgdUpdate> op) {
  add_decay_and_scaling(add_rate(op));
  return add_update_inputs(op, {}).doc("(1 - lr · wd) · weight - lr · sign(grad).");
}

OpDef define(Op<SignumUpdate> op) {
  add_decay_and_scaling(add_momentum(add_rate(op)));
  op.param(&SignumUpdate::wd_lh, "wd_lh", "weight decay that goes past the momentum, straight to the weight");
  return add_update_inputs(op, {"mom"})
      .doc("mom = momentum · mom - (1 - momentum) · (grad + wd · weight); (1 - lr · wd_lh) · weight + lr · sign(mom).");
}

OpDef define(Op<DcasgdUpdate> op) {
  add_decay_and_scaling(add_momentum(add_rate(op)));
  op.param(&DcasgdUpdate::lamda, "lamda", "how much is corrected for the way the weight has gone");
  return add_update_inputs(op, {"mom", "previous"})
      .doc("mom = momentum · mom - lr · (grad + wd · weight + lamda · grad² · (weight - previous)); weight + mom.");
}

OpDef define(Op<SgldUpdate> op) {
  add_decay_and_scaling(add_rate(op));
  return add_update_inputs(op, {}).random().doc("weight - lr / 2 · (grad + wd · weight) + noise of variance lr.");
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
