#include "symbind/ops/multi_optimizer.h"

#include "symbind/ops/floating.h"
#include "symbind/ops/update.h"

namespace symbind {
namespace {

// weight_0, grad_0, weight_1, grad_1, …
auto repeated(Names stems) {
  return [stems = std::move(stems)](const auto& /*params*/, size_t index) {
    return stems[index % stems.size()] + "_" + std::to_string(index / stems.size());
  };
}

// `each` names the inputs of one weight; those after weight and grad are states, float32 ones where asked.
template <class P>
Op<P>& add_multi(Op<P>& op, const Names& each, bool float32_states) {
  const size_t per_weight = each.size();
  op.param(&P::lrs, "lrs", "learning rate of each weight; num_weights numbers")
      .param(&P::wds, "wds", "weight decay of each weight; num_weights numbers");
  return add_scaling(op)
      .param(&P::num_weights, "num_weights", "number of weights that are updated", at_least(1))
      .inputs([per_weight](const P& p) { return count_of(p.num_weights) * per_weight; }, repeated(each))
      .outputs(&P::num_weights, repeated({"output"}))
      .also_updates([per_weight](const P&, size_t input) { return input % per_weight >= 2; })
      .check([](P& p) {
        const auto wanted = static_cast<size_t>(p.num_weights);
        require(p.lrs.size() == wanted, "lrs must have as many numbers as there are weights: ", p.lrs.size(), " for ",
                wanted);
        require(p.wds.size() == wanted, "wds must have as many numbers as there are weights: ", p.wds.size(), " for ",
                wanted);
      })
      .infer_shape([per_weight](const P&, Shapes& s) {
        for (size_t i = 0; i < s.outputs(); ++i) {
          const size_t first = i * per_weight;
          for (size_t k = 0; k < per_weight; ++k) s.output(i).meet(s.input(first + k));
          for (size_t k = 0; k < per_weight; ++k) s.input(first + k).meet(s.output(i));
        }
      })
      .infer_type([per_weight, float32_states](const P&, Types& t) {
        for (size_t i = 0; i < t.outputs(); ++i) {
          const size_t first = i * per_weight, same = float32_states ? 2 : per_weight;
          DType common = t.output(i);
          for (size_t k = 0; k < same; ++k)
            if (t.input(first + k).known()) common = t.input(first + k);
          require_floating(t, "weight", common);
          for (size_t k = 0; k < per_weight; ++k) {
            if (k >= same)
              t.input(first + k).meet(DType::float32);
            else if (common != DType::none)
              t.input(first + k).meet(common);
          }
          if (common != DType::none) t.output(i).meet(common);
        }
      });
}

OpDef define(Op<MultiSgdUpdate> op) {
  return add_multi(op, {"weight", "grad"}, false)
      .doc(
          "sgd_update of num_weights weights in one call. The inputs are those of sgd_update, weight after weight; "
          "there is one output per weight.");
}

OpDef define(Op<MultiSgdMomUpdate> op) {
  return add_multi(add_momentum(op), {"weight", "grad", "mom"}, false)
      .doc(
          "sgd_mom_update of num_weights weights in one call. The inputs are those of sgd_mom_update, weight after "
          "weight; there is one output per weight.");
}

OpDef define(Op<MultiMpSgdUpdate> op) {
  return add_multi(op, {"weight", "grad", "weight32"}, true)
      .doc(
          "mp_sgd_update of num_weights weights in one call. The inputs are those of mp_sgd_update, weight after "
          "weight; there is one output per weight.");
}

OpDef define(Op<MultiMpSgdMomUpdate> op) {
  return add_multi(add_momentum(op), {"weight", "grad", "mom", "weight32"}, true)
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
