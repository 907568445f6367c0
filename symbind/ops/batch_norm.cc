#include "symbind/ops/batch_norm.h"

#include "symbind/core/axis_view.h"
#include "symbind/graph/define.h"
#include "symbind/ops/activation.h"
#include "symbind/ops/batch_norm_fields.h"
#include "symbind/ops/batch_norm_recompute.h"
#include "symbind/ops/elementwise.h"
#include "symbind/ops/floating.h"

namespace symbind {
namespace {

// Is another array added to the result?
bool has_sum(const BatchNorm&) { return false; }
bool has_sum(const BatchNormAddRelu&) { return true; }
bool has_sum(const BatchNormGivenSums& p) { return p.add; }

template <class P>
Names forward_inputs(const P& p) {
  Names names{"data", "gamma", "beta"};
  if (std::is_same_v<P, BatchNormGivenSums>) names.insert(names.end(), {"channel_sum", "channel_square_sum"});
  if (has_sum(p)) names.push_back("sum");
  return names;
}

template <class P>
Op<P>& with_forward_inputs(Op<P>& op) {
  if constexpr (std::is_same_v<P, BatchNormGivenSums>)
    return op.inputs([](const P& p) { return forward_inputs(p); });
  else
    return op.inputs(forward_inputs(P{}));
}

// The inputs and states with an element per channel.
template <class P>
Names per_channel_inputs() {
  Names names{"gamma", "beta", "moving_mean", "moving_var"};
  if (std::is_same_v<P, BatchNormGivenSums>) names.insert(names.end(), {"channel_sum", "channel_square_sum"});
  return names;
}

template <class P>
Op<P>& as_forward(Op<P>& op) {
  return with_batch_norm_results(with_forward_inputs(with_batch_norm_fields(op)))
      .infer_shape([](const P& p, Shapes& s) {
        auto data = s["data"];
        data.meet(s.output(0));
        if (!data.rank_known()) return;
        const int axis = data.get().axis(p.axis, join(s.where(), " axis"));
        for (const std::string& input : per_channel_inputs<P>()) {
          s[input].meet({data[axis]});
          data.meet_dim(axis, s[input][0]);
        }
        s.output(1).meet({data[axis]});
        s.output(2).meet({data[axis]});
        s.output(0).meet(data.get());
        if (has_sum(p)) s["sum"].meet(data.get());
      })
      .infer_type([](const P& p, Types& t) {
        t["data"].meet(t.output(0));
        t.output(0).meet(t["data"]);
        if (!t["data"].known()) return;
        if (has_sum(p)) t["sum"].meet(t["data"]);
        require_floating(t, "data", t["data"]);
        const DType type = at_least_float32(t["data"]);  // of statistics and parameters
        for (const std::string& input : per_channel_inputs<P>()) t[input].meet(type);
        t.output(1).meet(type);
        t.output(2).meet(type);
      });
}

OpDef define_batch_norm(Op<BatchNorm> op) {
  return as_forward(op)
      .aliases({"BatchNorm_v1", "CuDNNBatchNorm"})  // in networks of 2015 to 2017
      .doc(
          "Batch normalization: gamma · (x - mean) / √(variance + eps) + beta for each channel. Training uses the mean "
          "and variance of the batch and updates the moving averages moving_mean and moving_var; inference uses the "
          "moving averages. gamma, beta and the averages have one element per channel.")
      .memory_bound()
      .in_place()
      .ignored_inputs([](const BatchNorm& p) { return p.fix_gamma ? Names{"gamma"} : Names{}; })
      .recomputed_by([](const BatchNorm& p) { return recompute_norm(p, false); })
      .gradient([](const BatchNorm& p, Grad& g) {
        if (!g.has_out_grad(0)) return;
        const auto grads =
            batch_norm_grad({g.out_grad(), g.input("data"), g.input("gamma"), g.output(1), g.output(2)}, {p});
        g.set("data", grads[0]);
        g.set("gamma", grads[1]);
        g.set("beta", grads[2]);
      });
}

template <class P>
Op<P>& as_gradient(Op<P>& op) {
  return with_batch_norm_fields(op)
      .outputs({"data_grad", "gamma_grad", "beta_grad"})
      .infer_shape([](const P&, Shapes& s) {
        s.output(0).meet(s["data"]);
        if (s.outputs() > 3) s.output(3).meet(s["data"]);
        s["out_grad"].meet(s["data"]);
        for (size_t index : {1, 2}) s.output(index).meet(s["gamma"]);
        if (s.input_name(s.inputs() - 1) == "sum") s["sum"].meet(s["data"]);
      })
      .template shapes_of<BatchNorm>()
      .infer_type([](const P&, Types& t) {
        t.output(0).meet(t["data"]);
        if (t.outputs() > 3) t.output(3).meet(t["data"]);
        t["out_grad"].meet(t["data"]);
        for (size_t index : {1, 2}) t.output(index).meet(t["gamma"]);
        if (t.input_name(t.inputs() - 1) == "sum") t["sum"].meet(t["data"]);
      })
      .template types_of<BatchNorm>();
}

OpDef define_batch_norm_grad(Op<BatchNormGrad> op) {
  return as_gradient(op).inputs({"out_grad", "data", "gamma", "mean", "var"}).in_place();
}

OpDef define_batch_norm_relu(Op<BatchNormRelu> op) {
  return as_forward(op).memory_bound().recomputed_by([](const BatchNormRelu& p) { return recompute_norm(p, true); });
}

template <class P>
Op<P>& as_relu_gradient(Op<P>& op) {
  return as_gradient(op)
      .param(&BatchNormReluGrad::with_sum, "with_sum", "add another array to the gradient of the data")
      .inputs([](const P& p) {
        Names names{"out_grad", "data", "gamma", "beta", "mean", "var"};
        if (p.with_sum) names.push_back("sum");
        return names;
      });
}

OpDef define_batch_norm_relu_grad(Op<BatchNormReluGrad> op) { return as_relu_gradient(op); }

OpDef define_batch_norm_relu_grad_output(Op<BatchNormReluGradOutput> op) {
  return as_relu_gradient(op).outputs({"data_grad", "gamma_grad", "beta_grad", "output"});
}

OpDef define_batch_norm_add_relu(Op<BatchNormAddRelu> op) {
  return as_forward(op).memory_bound().recomputed_by(
      [](const BatchNormAddRelu& p) { return recompute_norm_add_relu(p, 3); });
}

OpDef define_batch_norm_given_sums(Op<BatchNormGivenSums> op) {
  return as_forward(op)
      .param(&BatchNormGivenSums::add, "add", "add another array to the result")
      .param(&BatchNormGivenSums::relu, "relu", "apply ReLU to the result")
      .memory_bound()
      .recomputed_by([](const BatchNormGivenSums& p) {
        return p.add ? recompute_norm_add_relu(p, 5) : recompute_norm(p, p.relu);
      });
}

// The gradients of the norm's result and of the sum are the same, and are as large as the data.
OpDef define_batch_norm_add_relu_grad(Op<BatchNormAddReluGrad> op) {
  return with_batch_norm_fields(op)
      .param(&BatchNormAddReluGrad::two_grads, "two_grads", "the gradient of the output is the sum of two arrays")
      .inputs([](const BatchNormAddReluGrad& p) {
        Names names{"out_grad", "output", "data", "gamma", "mean", "var"};
        if (p.two_grads) names.push_back("more_grad");
        return names;
      })
      .outputs({"data_grad", "gamma_grad", "beta_grad", "sum_grad"})
      .infer_shape([](const BatchNormAddReluGrad& p, Shapes& s) {
        for (const size_t index : {0, 3}) s.output(index).meet(s["data"]);
        for (const char* input : {"out_grad", "output"}) s[input].meet(s["data"]);
        if (p.two_grads) s["more_grad"].meet(s["data"]);
        for (const size_t index : {1, 2}) s.output(index).meet(s["gamma"]);
      })
      .shapes_of<BatchNorm>()
      .infer_type([](const BatchNormAddReluGrad& p, Types& t) {
        for (const size_t index : {0, 3}) t.output(index).meet(t["data"]);
        for (const char* input : {"out_grad", "output"}) t[input].meet(t["data"]);
        if (p.two_grads) t["more_grad"].meet(t["data"]);
        for (const size_t index : {1, 2}) t.output(index).meet(t["gamma"]);
      })
      .types_of<BatchNorm>();
}

}  // namespace

Symbol network_of(const BatchNormAddRelu& p, const ComposedInputs& in) {
  BatchNorm norm = p;
  norm.output_mean_var = true;
  const Symbol normalized = batch_norm({in[0], in[1], in[2], in[4], in[5]}, norm);
  return Symbol::group({activation(normalized[0] + in[3], {.act_type = act_type::relu}), normalized[1], normalized[2]});
}

Symbol network_of(const BatchNormAddReluGrad& p, const ComposedInputs& in) {
  const Symbol out_grad = p.two_grads ? in[0] + in[6] : in[0];
  const Symbol sum_grad = activation_grad({out_grad, in[1]}, {{.act_type = act_type::relu}});
  const Symbol grads = batch_norm_grad({sum_grad, in[2], in[3], in[4], in[5]}, {p});
  return Symbol::group({grads[0], grads[1], grads[2], sum_grad});
}

Symbol network_of(const BatchNormGivenSums& p, const ComposedInputs& in) {
  BatchNorm norm = p;
  norm.output_mean_var = true;
  const size_t states = p.add ? 6 : 5;
  const Symbol normalized = batch_norm({in[0], in[1], in[2], in[states], in[states + 1]}, norm);
  Symbol output = normalized[0];
  if (p.add) output = output + in[5];
  if (p.relu) output = activation(output, {.act_type = act_type::relu});
  return Symbol::group({output, normalized[1], normalized[2]});
}

BatchNormSize size_of(const BatchNorm& params, const Shape& data) {
  const auto [outer, channels, inner] = view_along(data, data.axis(params.axis, "[BatchNorm] axis"));
  return {outer, channels, inner};
}

void register_batch_norm(OpRegistry& registry) {
  add(registry, "BatchNorm", define_batch_norm);
  add_internal(registry, "_backward_BatchNorm", define_batch_norm_grad);
  add_internal(registry, "_BatchNorm_Relu", define_batch_norm_relu);
  add_internal(registry, "_backward_BatchNorm_Relu", define_batch_norm_relu_grad);
  add_internal(registry, "_backward_BatchNorm_Relu_Output", define_batch_norm_relu_grad_output);
  add_internal(registry, "_BatchNorm_Add_Relu", define_batch_norm_add_relu);
  add_internal(registry, "_backward_BatchNorm_Add_Relu", define_batch_norm_add_relu_grad);
  add_internal(registry, "_BatchNorm_Given_Sums", define_batch_norm_given_sums);
}

}  // namespace symbind
