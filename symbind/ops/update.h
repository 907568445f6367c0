// What the definitions of all update operators share.
#pragma once

#include "symbind/graph/define.h"

namespace symbind {

// The first `plain` inputs and output 0 have one floating type; the inputs behind them are float32.
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
  return op.param(&P::rescale_grad, "rescale_grad", "the gradient is multiplied by this first")
      .param(&P::clip_gradient, "clip_gradient", "then cut to [-clip_gradient, clip_gradient]; below 0: not at all");
}

template <class P>
Op<P>& add_decay_and_scaling(Op<P>& op) {
  op.param(&P::wd, "wd", "weight decay: how much of the weight is added to the gradient");
  return add_scaling(op);
}

template <class P>
Op<P>& add_rate(Op<P>& op) {
  return op.param(&P::lr, "lr", "learning rate");
}

template <class P>
Op<P>& add_momentum(Op<P>& op) {
  return op.param(&P::momentum, "momentum", "how much of the last step is kept");
}

template <class P>
Op<P>& add_lazy(Op<P>& op) {
  return op.param(&P::lazy_update, "lazy_update", "leave rows without a gradient alone, if the gradient is sparse");
}

template <class P>
Op<P>& add_betas(Op<P>& op) {
  return op.param(&P::beta1, "beta1", "how much of the running mean is kept")
      .param(&P::beta2, "beta2", "how much of the running square is kept");
}

}  // namespace symbind
