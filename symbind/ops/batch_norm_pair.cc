#include "symbind/ops/batch_norm_pair.h"

#include <set>

#include "symbind/ops/activation.h"
#include "symbind/ops/batch_norm_fields.h"
#include "symbind/ops/batch_norm_recompute.h"
#include "symbind/ops/elementwise.h"
#include "symbind/ops/relu_signs.h"

namespace symbind {
namespace {

// Inference from the data and gamma of the first norm: `like_data` and `per_channel` are outputs, and inputs follow by
// their names.
template <class Inference>
void infer_arrays(Inference& all, std::initializer_list<size_t> like_data, std::initializer_list<size_t> per_channel) {
  static const std::set<std::string> named_data{"data", "other_data", "out_grad", "more_grad", "output"};
  for (size_t i = 0; i < all.inputs(); ++i)
    if (const std::string& name = all.input_name(i); name != "signs")
      all.input(i).meet(all[named_data.contains(name) ? "data" : "gamma"]);
  for (const size_t index : like_data) all.output(index).meet(all["data"]);
  for (const size_t index : per_channel) all.output(index).meet(all["gamma"]);
}

// ---- Forward --------------------------------------------------------------------------------------------------------

void append_norm(Names& names, const std::string& prefix, bool given_sums) {
  for (const char* name : {"data", "gamma", "beta"}) names.push_back(prefix + name);
  if (!given_sums) return;
  for (const char* name : {"channel_sum", "channel_square_sum"}) names.push_back(prefix + name);
}

OpDef define_pair(Op<BatchNormPair> op) {
  return with_batch_norm_fields(op)
      .param(&BatchNormPair::given_sums, "given_sums", "the sums of the channels are inputs")
      .param(&BatchNormPair::other_given_sums, "other_given_sums", "those of the other norm are inputs")
      .param(&BatchNormPair::signs, "signs", "return the signs of the output, too")
      .inputs([](const BatchNormPair& p) {
        Names names;
        append_norm(names, "", p.given_sums);
        append_norm(names, "other_", p.other_given_sums);
        return names;
      })
      .aux({"moving_mean", "moving_var", "other_moving_mean", "other_moving_var"})
      .outputs([](const BatchNormPair& p) {
        Names names{"output", "mean", "var", "other_mean", "other_var"};
        if (p.signs) names.push_back("signs");
        return names;
      })
      .memory_bound()
      .recomputed_by([](const BatchNormPair& p) {
        const int other = p.given_sums ? 5 : 3;
        return recompute_by(BatchNormAddReluRecompute{.fix_gamma = p.fix_gamma, .axis = p.axis, .pair = true},
                            {0, 1, 2, other, other + 1, other + 2}, {1, 2, 3, 4});
      })
      .infer_shape([](const BatchNormPair& p, Shapes& s) {
        infer_arrays(s, {0}, {1, 2, 3, 4});
        if (p.signs && s["data"].known()) s.output(5).meet(shape_of_signs(s["data"], p.axis));
      })
      .shapes_of<BatchNorm>()
      .infer_type([](const BatchNormPair& p, Types& t) {
        infer_arrays(t, {0}, {1, 2, 3, 4});
        if (p.signs) t.output(5).meet(DType::uint8);
      })
      .types_of<BatchNorm>();
}

// ---- Gradients ------------------------------------------------------------------------------------------------------

const Names other_inputs{"other_data", "other_gamma", "other_mean", "other_var"};
const Names gradients{"data_grad", "gamma_grad", "beta_grad", "other_data_grad", "other_gamma_grad", "other_beta_grad"};

OpDef define_pair_grad(Op<BatchNormPairGrad> op) {
  return with_batch_norm_fields(op)
      .param(&BatchNormPairGrad::signs, "signs", "signs are given instead of the output")
      .param(&BatchNormPairGrad::two_grads, "two_grads", "the gradient of the output is the sum of two arrays")
      .inputs([](const BatchNormPairGrad& p) {
        Names names{"out_grad", p.signs ? "signs" : "output", "data", "gamma", "mean", "var"};
        names.insert(names.end(), other_inputs.begin(), other_inputs.end());
        if (p.two_grads) names.push_back("more_grad");
        return names;
      })
      .outputs([](const BatchNormPairGrad&) {
        Names names = gradients;
        names.push_back("sum_grad");
        return names;
      })
      .infer_shape([](const BatchNormPairGrad& p, Shapes& s) {
        infer_arrays(s, {0, 3, 6}, {1, 2, 4, 5});
        if (p.signs && s["data"].known()) s["signs"].meet(shape_of_signs(s["data"], p.axis));
      })
      .shapes_of<BatchNorm>()
      .infer_type([](const BatchNormPairGrad& p, Types& t) {
        infer_arrays(t, {0, 3, 6}, {1, 2, 4, 5});
        if (p.signs) t["signs"].meet(DType::uint8);
      })
      .types_of<BatchNorm>();
}

OpDef define_pair_grad_from_sums(Op<BatchNormPairGradFromSums> op) {
  return with_batch_norm_fields(op)
      .param(&BatchNormPairGradFromSums::other_sum, "other_sum", "the sum of the other norm is an input")
      .inputs([](const BatchNormPairGradFromSums& p) {
        Names names{"out_grad", "data", "gamma", "mean", "var", "grad_sum", "grad_away_sum"};
        names.insert(names.end(), other_inputs.begin(), other_inputs.end());
        if (p.other_sum) names.push_back("other_grad_away_sum");
        return names;
      })
      .outputs([](const BatchNormPairGradFromSums&) { return gradients; })
      .infer_shape([](const BatchNormPairGradFromSums&, Shapes& s) {
        infer_arrays(s, {0, 3}, {1, 2, 4, 5});
      })
      .shapes_of<BatchNorm>()
      .infer_type([](const BatchNormPairGradFromSums&, Types& t) {
        infer_arrays(t, {0, 3}, {1, 2, 4, 5});
      })
      .types_of<BatchNorm>();
}

// The gradients of both norms; each from its data, gamma, mean and var.
std::vector<Symbol> gradients_of_both(const BatchNorm& p, const Symbol& out_grad, const ComposedInputs& in,
                                      size_t first, size_t second) {
  std::vector<Symbol> all;
  for (const size_t norm : {first, second}) {
    const Symbol grads = batch_norm_grad({out_grad, in[norm], in[norm + 1], in[norm + 2], in[norm + 3]}, {p});
    for (size_t i = 0; i < 3; ++i) all.push_back(grads[i]);
  }
  return all;
}

}  // namespace

Symbol network_of(const BatchNormPair& p, const ComposedInputs& in) {
  BatchNorm norm = p;
  norm.output_mean_var = true;
  const size_t second = p.given_sums ? 5 : 3, states = second + (p.other_given_sums ? 5 : 3);
  const auto normalized = [&](size_t first, size_t state) {
    return batch_norm({in[first], in[first + 1], in[first + 2], in[state], in[state + 1]}, norm);
  };
  const Symbol a = normalized(0, states), b = normalized(second, states + 2);
  std::vector<Symbol> outputs{activation(a[0] + b[0], {.act_type = act_type::relu}), a[1], a[2], b[1], b[2]};
  if (p.signs) outputs.push_back(relu_signs(outputs[0], {p.axis}));
  return Symbol::group(outputs);
}

Symbol network_of(const BatchNormPairGrad& p, const ComposedInputs& in) {
  const Symbol out_grad = p.two_grads ? in[0] + in[10] : in[0];
  const Symbol sum_grad = p.signs ? relu_signs_grad({out_grad, in[1]}, {{p.axis}})
                                  : activation_grad({out_grad, in[1]}, {{.act_type = act_type::relu}});
  std::vector<Symbol> outputs = gradients_of_both(p, sum_grad, in, 2, 6);
  outputs.push_back(sum_grad);
  return Symbol::group(outputs);
}

Symbol network_of(const BatchNormPairGradFromSums& p, const ComposedInputs& in) {
  return Symbol::group(gradients_of_both(p, in[0], in, 1, 7));
}

bool is_pair(const BatchNorm& first, const BatchNorm& second) {
  return first.eps == second.eps && first.momentum == second.momentum && first.fix_gamma == second.fix_gamma &&
         first.use_global_stats == second.use_global_stats && first.axis == second.axis;
}

void register_batch_norm_pair(OpRegistry& registry) {
  add_internal(registry, "_BatchNorm_Pair", define_pair);
  add_internal(registry, "_backward_BatchNorm_Pair", define_pair_grad);
  add_internal(registry, "_backward_BatchNorm_Pair_Sums", define_pair_grad_from_sums);
}

}  // namespace symbind
