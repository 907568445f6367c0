#include "symbind/ops/relu_signs.h"

#include "symbind/ops/batch_norm_fields.h"
#include "symbind/ops/batch_norm_recompute.h"
#include "symbind/ops/floating.h"

namespace symbind {
namespace {

template <class P>
Op<P>& with_axis(Op<P>& op) {
  return op.param(&ReluSigns::axis, "axis", "axis of the channels; negative ones count from the end");
}

OpDef define_relu_signs(Op<ReluSigns> op) {
  return with_axis(op)
      .doc("Signs of the elements of an array, two bits each.")
      .outputs({"signs"})
      .infer_shape([](const ReluSigns& p, Shapes& s) {
        if (s["data"].known()) s.output().meet(shape_of_signs(s["data"], p.axis));
      })
      .infer_type([](const ReluSigns&, Types& t) {
        require_floating(t, "data", t["data"]);
        t.output().meet(DType::uint8);
      });
}

OpDef define_relu_signs_grad(Op<ReluSignsGrad> op) {
  return with_axis(op)
      .inputs({"out_grad", "signs"})
      .outputs({"data_grad"})
      .infer_shape([](const ReluSignsGrad& p, Shapes& s) {
        s.output().meet(s["out_grad"]);
        if (s["out_grad"].known()) s["signs"].meet(shape_of_signs(s["out_grad"], p.axis));
      })
      .infer_type([](const ReluSignsGrad&, Types& t) {
        t.output().meet(t["out_grad"]);
        require_floating(t, "out_grad", t["out_grad"]);
        t["signs"].meet(DType::uint8);
      });
}

BatchNormGivenSums as_given_sums(const BatchNorm& p) { return {p, true, true}; }

// Calls function(operator, parameters) of the operator without signs.
template <class Function>
void without_signs(const BatchNormSigns& p, Function function) {
  if (p.given_sums)
    function(op_of<BatchNormGivenSums>(), as_given_sums(p));
  else
    function(op_of<BatchNormAddRelu>(), BatchNormAddRelu{p});
}

OpDef define_batch_norm_signs(Op<BatchNormSigns> op) {
  return with_batch_norm_fields(op)
      .param(&BatchNormSigns::given_sums, "given_sums", "the sums of the channels are inputs")
      .inputs([](const BatchNormSigns& p) {
        Names names{"data", "gamma", "beta"};
        if (p.given_sums) names.insert(names.end(), {"channel_sum", "channel_square_sum"});
        names.push_back("sum");
        return names;
      })
      .aux({"moving_mean", "moving_var"})
      .outputs({"output", "mean", "var", "signs"})
      .memory_bound()
      .recomputed_by([](const BatchNormSigns& p) { return recompute_norm_add_relu(p, p.given_sums ? 5 : 3); })
      .infer_shape([](const BatchNormSigns& p, Shapes& s) {
        without_signs(p, [&](const OpDef& other, const auto& params) { other.infer_shape(&params, s); });
        if (s["data"].known()) s.output(3).meet(shape_of_signs(s["data"], p.axis));
      })
      .infer_type([](const BatchNormSigns& p, Types& t) {
        without_signs(p, [&](const OpDef& other, const auto& params) { other.infer_type(&params, t); });
        t.output(3).meet(DType::uint8);
      });
}

OpDef define_batch_norm_signs_grad(Op<BatchNormSignsGrad> op) {
  return with_batch_norm_fields(op)
      .param(&BatchNormAddReluGrad::two_grads, "two_grads", "the gradient of the output is the sum of two arrays")
      .inputs([](const BatchNormSignsGrad& p) {
        Names names{"out_grad", "signs", "data", "gamma", "mean", "var"};
        if (p.two_grads) names.push_back("more_grad");
        return names;
      })
      .outputs({"data_grad", "gamma_grad", "beta_grad", "sum_grad"})
      .infer_shape([](const BatchNormSignsGrad& p, Shapes& s) {
        for (const size_t index : {0, 3}) s.output(index).meet(s["data"]);
        s["out_grad"].meet(s["data"]);
        if (p.two_grads) s["more_grad"].meet(s["data"]);
        for (const size_t index : {1, 2}) s.output(index).meet(s["gamma"]);
        if (s["data"].known()) s["signs"].meet(shape_of_signs(s["data"], p.axis));
      })
      .shapes_of<BatchNorm>()
      .infer_type([](const BatchNormSignsGrad& p, Types& t) {
        for (const size_t index : {0, 3}) t.output(index).meet(t["data"]);
        t["out_grad"].meet(t["data"]);
        if (p.two_grads) t["more_grad"].meet(t["data"]);
        for (const size_t index : {1, 2}) t.output(index).meet(t["gamma"]);
        t["signs"].meet(DType::uint8);
      })
      .types_of<BatchNorm>();
}

}  // namespace

Symbol network_of(const BatchNormSigns& p, const ComposedInputs& in) {
  const Symbol made = p.given_sums ? network_of(as_given_sums(p), in) : network_of(BatchNormAddRelu{p}, in);
  return Symbol::group({made[0], made[1], made[2], relu_signs(made[0], {p.axis})});
}

Symbol network_of(const BatchNormSignsGrad& p, const ComposedInputs& in) {
  const Symbol out_grad = p.two_grads ? in[0] + in[6] : in[0];
  const Symbol sum_grad = relu_signs_grad({out_grad, in[1]}, {{p.axis}});
  const Symbol grads = batch_norm_grad({sum_grad, in[2], in[3], in[4], in[5]}, {p});
  return Symbol::group({grads[0], grads[1], grads[2], sum_grad});
}

bool signs_fill_bytes(const Shape& data, int64_t axis) {
  return data[data.axis(axis, "[ReluSigns] axis")] % signs_per_byte == 0;
}

Shape shape_of_signs(const Shape& data, int64_t axis) {
  require(signs_fill_bytes(data, axis), "[ReluSigns] signs need a multiple of ", signs_per_byte, " channels: data ",
          data, ", axis ", axis);
  return {data.size() / signs_per_byte};
}

void register_relu_signs(OpRegistry& registry) {
  add_internal(registry, "_Relu_Signs", define_relu_signs);
  add_internal(registry, "_backward_Relu_Signs", define_relu_signs_grad);
  add_internal(registry, "_BatchNorm_Signs", define_batch_norm_signs);
  add_internal(registry, "_backward_BatchNorm_Signs", define_batch_norm_signs_grad);
}

}  // namespace symbind
