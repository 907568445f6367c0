// What the definitions of all update operators share.
#pragma once

#include "symbind/graph/define.h"

namespace symbind {

// The first `plain` inputs and output 0 have one floating type; the inputs after them are float32.
inline void types_with_master(Types& types, size_t plain) {
  DType common = types.output().get();
  for (size_t i = 0; i < plain; ++i)
    if (types.input(i).known()) common = types.input(i);
  for (size_t i = plain; i < types.inputs(); ++i) types.input(i).meet(DType::float32);
  if (common == DType::none) return;
  require(is_floating(common), types.where(), " weight must be of a floating type: ", common);
  for (size_t i = 0; i < plain; ++i) types.input(i).meet(common);
  types.output().meet(common);
}

// weight, grad and the named states: all of one shape; all of one floating type, or the states float32 ones.
enum class StateTypes { as_weight, float32 };
template <class P>
Op<P>& add_update_inputs(Op<P>& op, Names states, StateTypes state_types = StateTypes::as_weight) {
  op.inputs({"weight", "grad"}).aux(std::move(states));
  const bool as_weight = state_types == StateTypes::as_weight;
  return op.infer_type([as_weight](const P&, Types& t) { types_with_master(t, as_weight ? t.inputs() : 2); });
}

template <class P>
Op<P>& add_scaling(Op<P>& op) {
  return op.param(&P::rescale_grad, "rescale_grad", "factor of the gradient, applied first; 1 / batch size, say")
      .param(&P::clip_gradient, "clip_gradient",
             "each element of the rescaled gradient is clipped to [-clip_gradient, clip_gradient]; a value below 0 "
             "turns clipping off");
}

template <class P>
Op<P>& add_decay_and_scaling(Op<P>& op) {
  op.param(&P::wd, "wd", "weight decay: wd · weight is added to the gradient");
  return add_scaling(op);
}

template <class P>
Op<P>& add_rate(Op<P>& op) {
  return op.param(&P::lr, "lr", "learning rate: the factor of the step");
}

template <class P>
Op<P>& add_momentum(Op<P>& op) {
  return op.param(&P::momentum, "momentum",
                  "momentum: the fraction of the previous step that is added to this one, in [0, 1)");
}

template <class P>
Op<P>& add_lazy(Op<P>& op) {
  return op.param(&P::lazy_update, "lazy_update",
                  "update only the rows that a sparse gradient holds; gradients are dense here, so it has no effect");
}

template <class P>
Op<P>& add_betas(Op<P>& op) {
  return op.param(&P::beta1, "beta1", "decay rate of the running mean of the gradient, in [0, 1)")
      .param(&P::beta2, "beta2", "decay rate of the running mean of the squared gradient, in [0, 1)");
}

}  // namespace symbind
