// Like the statistics of BatchNorm, the moving average is updated in a training forward (MXNet updates it in backward);
// the gradient reads its value from a hidden output.
#include "symbind/ops/sparse_reg.h"

#include "symbind/graph/define.h"
#include "symbind/ops/floating.h"

namespace symbind {
namespace {

template <class P>
Op<P>& with_fields(Op<P>& op) {
  return op
      .param(&IdentityAttachKLSparseReg::sparseness_target, "sparseness_target",
             "target of the mean activation, in (0, 1)", between(0, 1))
      .param(&IdentityAttachKLSparseReg::penalty, "penalty", "factor of the penalty")
      .param(&IdentityAttachKLSparseReg::momentum, "momentum",
             "fraction of the old value kept when the moving average is updated, in [0, 1]", between(0, 1));
}

OpDef define(Op<IdentityAttachKLSparseReg> op) {
  return with_fields(op)
      .doc(
          "Sparsity regularization: the identity in forward. In backward it adds the gradient of penalty · "
          "KL(sparseness_target ‖ mean activation) to the gradient of data, with a moving average of each channel's "
          "mean activation. For activations between 0 and 1.")
      .precision(Precision::full)
      .own_gradient_terms()
      .aux({"moving_avg"})
      .initialize("moving_avg", R"(["zero", {}])")
      .outputs({"output", "average"})
      .visible_outputs([](const IdentityAttachKLSparseReg&) { return 1; })
      .outputs_in_files([](const IdentityAttachKLSparseReg&) { return 1; })
      .infer_shape([](const IdentityAttachKLSparseReg&, Shapes& s) {
        auto data = s["data"];
        data.meet(s.output(0));
        s.output(0).meet(data);
        if (!data.rank_known()) return;
        require(data.rank() >= 2, s.where(), " data needs a second axis, of channels: data ", data.get());
        s["moving_avg"].meet({data[1]});
        s.output(1).meet({data[1]});
      })
      .infer_type([](const IdentityAttachKLSparseReg&, Types& t) {
        t["data"].meet(t.output(0));
        t.output(0).meet(t["data"]);
        if (!t["data"].known()) return;
        require_floating(t, "data", t["data"]);
        t["moving_avg"].meet(at_least_float32(t["data"]));
        t.output(1).meet(at_least_float32(t["data"]));
      })
      .gradient([](const IdentityAttachKLSparseReg& p, Grad& g) {
        g.set("data", identity_attach_kl_sparse_reg_grad(g.out_grad(), g.output(1), {p}));
      });
}

OpDef define(Op<IdentityAttachKLSparseRegGrad> op) {
  return with_fields(op)
      .inputs({"out_grad", "average"})
      .infer_shape([](const auto&, Shapes& s) { s.output().meet(s["out_grad"].get()); })
      .shapes_of<IdentityAttachKLSparseReg>()
      .infer_type([](const auto&, Types& t) { t.output().meet(t["out_grad"]); })
      .types_of<IdentityAttachKLSparseReg>();
}

}  // namespace

void register_sparse_reg(OpRegistry& registry) {
  add<IdentityAttachKLSparseReg>(registry, "IdentityAttachKLSparseReg", define);
  add_internal<IdentityAttachKLSparseRegGrad>(registry, "_backward_IdentityAttachKLSparseReg", define);
}

}  // namespace symbind
