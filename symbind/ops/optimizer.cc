#include "symbind/ops/optimizer.h"

#include "symbind/graph/define.h"
#include "symbind/ops/floating.h"

namespace symbind {
namespace {

template <class P>
void add_common(Op<P>& op) {
  op.param(&P::wd, "wd", "weight decay: how much of the weight is taken off, in units of lr")
      .param(&P::rescale_grad, "rescale_grad", "the gradient is multiplied by this first")
      .param(&P::clip_gradient, "clip_gradient", "then cut to [-clip_gradient, clip_gradient]; below 0: not at all")
      .param(&P::lazy_update, "lazy_update", "leave rows without a gradient alone, if the gradient is sparse")
      .inputs({"weight", "grad"})
      .infer_type([](const P&, Types& t) { same_floating_type(t); });
}

OpDef define(Op<SgdUpdate> op) {
  op.param(&SgdUpdate::lr, "lr", "learning rate");
  add_common(op);
  return op.doc("weight - lr · (grad + wd · weight), after scaling and clipping the gradient.");
}

OpDef define(Op<SgdMomUpdate> op) {
  op.param(&SgdMomUpdate::lr, "lr", "learning rate")
      .param(&SgdMomUpdate::momentum, "momentum", "how much of the last step is kept");
  add_common(op);
  return op.aux({"mom"}).doc("mom = momentum · mom - lr · (grad + wd · weight); weight + mom.");
}

}  // namespace

void register_optimizer(OpRegistry& registry) {
  add<SgdUpdate>(registry, "sgd_update", define);
  add<SgdMomUpdate>(registry, "sgd_mom_update", define);
}

}  // namespace symbind
