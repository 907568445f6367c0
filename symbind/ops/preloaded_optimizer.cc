#include "symbind/ops/preloaded_optimizer.h"

#include "symbind/ops/multi_update.h"

namespace symbind {
namespace {

template <class P, class Base>
Op<P>& add_preloaded(Op<P>& op, int64_t Base::*count, Names each, bool float32_states) {
  add_num_weights(add_scaling(op));
  return add_multi_inputs(op, static_cast<int64_t P::*>(count), {std::move(each), {"lrs", "wds"}, float32_states},
                          [](const P& p) { return Shape{p.num_weights}; });
}

OpDef define(Op<PreloadedMultiSgdUpdate> op) {
  return add_preloaded(op, &PreloadedMultiSgdUpdate::num_weights, {"weight", "grad"}, false)
      .doc(
          "multi_sgd_update with the learning rates and weight decays in arrays. The inputs are those of sgd_update, "
          "weight after weight, then lrs and wds of shape (num_weights); there is one output per weight.");
}

OpDef define(Op<PreloadedMultiSgdMomUpdate> op) {
  return add_preloaded(add_momentum(op), &PreloadedMultiSgdMomUpdate::num_weights, {"weight", "grad", "mom"}, false)
      .doc(
          "multi_sgd_mom_update with the learning rates and weight decays in arrays. The inputs are those of "
          "sgd_mom_update, weight after weight, then lrs and wds of shape (num_weights); there is one output per "
          "weight.");
}

OpDef define(Op<PreloadedMultiMpSgdUpdate> op) {
  return add_preloaded(op, &PreloadedMultiSgdUpdate::num_weights, {"weight", "grad", "weight32"}, true)
      .doc(
          "multi_mp_sgd_update with the learning rates and weight decays in arrays. The inputs are those of "
          "mp_sgd_update, weight after weight, then lrs and wds of shape (num_weights); there is one output per "
          "weight.");
}

OpDef define(Op<PreloadedMultiMpSgdMomUpdate> op) {
  return add_preloaded(add_momentum(op), &PreloadedMultiSgdMomUpdate::num_weights,
                       {"weight", "grad", "mom", "weight32"}, true)
      .doc(
          "multi_mp_sgd_mom_update with the learning rates and weight decays in arrays. The inputs are those of "
          "mp_sgd_mom_update, weight after weight, then lrs and wds of shape (num_weights); there is one output per "
          "weight.");
}

}  // namespace

void register_preloaded_optimizer(OpRegistry& registry) {
  add<PreloadedMultiSgdUpdate>(registry, "preloaded_multi_sgd_update", define);
  add<PreloadedMultiSgdMomUpdate>(registry, "preloaded_multi_sgd_mom_update", define);
  add<PreloadedMultiMpSgdUpdate>(registry, "preloaded_multi_mp_sgd_update", define);
  add<PreloadedMultiMpSgdMomUpdate>(registry, "preloaded_multi_mp_sgd_mom_update", define);
}

}  // namespace symbind
