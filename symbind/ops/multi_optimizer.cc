#include "symbind/ops/multi_optimizer.h"

#include "symbind/ops/multi_update.h"

namespace symbind {
namespace {

// `each` names the inputs of one weight; those after weight and grad are states, float32 ones where asked.
template <class P, class Base>
Op<P>& add_multi(Op<P>& op, int64_t Base::*count, Names each, bool float32_states) {
  op.param(&P::lrs, "lrs", "learning rate of each weight; num_weights numbers")
      .param(&P::wds, "wds", "weight decay of each weight; num_weights numbers");
  add_num_weights(add_scaling(op)).check([](P& p) {
    require_one_each("lrs", p.lrs.size(), p.num_weights);
    require_one_each("wds", p.wds.size(), p.num_weights);
  });
  return add_multi_inputs(op, static_cast<int64_t P::*>(count), {std::move(each), {}, float32_states});
}

OpDef define(Op<MultiSgdUpdate> op) {
  return add_multi(op, &MultiSgdUpdate::num_weights, {"weight", "grad"}, false)
      .doc(
          "sgd_update of num_weights weights in one call. The inputs are those of sgd_update, weight after weight; "
          "there is one output per weight.");
}

OpDef define(Op<MultiSgdMomUpdate> op) {
  return add_multi(add_momentum(op), &MultiSgdMomUpdate::num_weights, {"weight", "grad", "mom"}, false)
      .doc(
          "sgd_mom_update of num_weights weights in one call. The inputs are those of sgd_mom_update, weight after "
          "weight; there is one output per weight.");
}

OpDef define(Op<MultiMpSgdUpdate> op) {
  return add_multi(op, &MultiSgdUpdate::num_weights, {"weight", "grad", "weight32"}, true)
      .doc(
          "mp_sgd_update of num_weights weights in one call. The inputs are those of mp_sgd_update, weight after "
          "weight; there is one output per weight.");
}

OpDef define(Op<MultiMpSgdMomUpdate> op) {
  return add_multi(add_momentum(op), &MultiSgdMomUpdate::num_weights, {"weight", "grad", "mom", "weight32"}, true)
      .doc(
          "mp_sgd_mom_update of num_weights weights in one call. The inputs are those of mp_sgd_mom_update, weight "
          "after weight; there is one output per weight.");
}

OpDef define(Op<MultiSumSq> op) {
  return op.doc("The sum of squares of each input array; the output has the shape (num_arrays).")
      .param(&MultiSumSq::num_arrays, "num_arrays", "number of input arrays", at_least(1))
      .variadic(&MultiSumSq::num_arrays, "num_arrays")
      .inputs(&MultiSumSq::num_arrays, repeated({"array"}))
      .infer_shape([](const MultiSumSq& p, Shapes& s) { s.output().meet(Shape{p.num_arrays}); })
      .infer_type([](const MultiSumSq&, Types& t) {
        for (size_t i = 0; i < t.inputs(); ++i) require_floating(t, "array", t.input(i));
        t.output().meet(DType::float32);
      });
}

OpDef define(Op<MultiLars> op) {
  return op
      .doc(
          "Learning rates of layer-wise adaptive rate scaling (LARS): lr · eta · |weight| / (|grad| + wd · |weight| + "
          "eps) for each array, computed from sums of squares; lr where a norm is 0. All inputs and the output have "
          "one number per array.")
      .param(&MultiLars::eta, "eta", "trust coefficient: the norm of a step relative to the norm of the weight")
      .param(&MultiLars::eps, "eps", "small constant added to the divisor, so that it is never 0")
      .param(&MultiLars::rescale_grad, "rescale_grad", "factor of the gradients, applied to their norms")
      .inputs({"lrs", "weights_sum_sq", "grads_sum_sq", "wds"})
      .infer_type([](const MultiLars&, Types& t) {
        for (size_t i = 0; i < t.inputs(); ++i) t.input(i).meet(DType::float32);
        t.output().meet(DType::float32);
      });
}

}  // namespace

void register_multi_optimizer(OpRegistry& registry) {
  add<MultiSgdUpdate>(registry, "multi_sgd_update", define);
  add<MultiSgdMomUpdate>(registry, "multi_sgd_mom_update", define);
  add<MultiMpSgdUpdate>(registry, "multi_mp_sgd_update", define);
  add<MultiMpSgdMomUpdate>(registry, "multi_mp_sgd_mom_update", define);
  add<MultiSumSq>(registry, "multi_sum_sq", define);
  add<MultiLars>(registry, "multi_lars", define);
}

}  // namespace symbind
