// The arrays of two BatchNorms whose sum goes through ReLU, for the operators of both and for those of each.
#pragma once

#include <array>
#include <vector>

#include "symbind/exec/invoke.h"
#include "symbind/ops/activation.h"
#include "symbind/ops/batch_norm_pair.h"
#include "symbind/ops/conv_statistics.h"
#include "symbind/ops/elementwise.h"
#include "symbind/ops/reduce.h"
#include "symbind/ops/relu_signs.h"

#include "tests/support/arrays.h"

namespace symbind::testing {

struct PairArrays {
  struct Norm {
    NDArray data, gamma, beta, sum, square_sum, moving_mean, moving_var;
  };
  std::array<Norm, 2> norms;
  NDArray out_grad, more_grad;

  explicit PairArrays(const Shape& shape, DType dtype, int axis = 1, Context context = cpu()) {
    const int channel_axis = axis < 0 ? axis + shape.rank() : axis;
    const Shape channels{shape[channel_axis]};
    const DType type = dtype == DType::float64 ? DType::float64 : DType::float32;
    const auto make = [&](const Shape& of, uint64_t seed, double low, double high, DType in) {
      return random_array(of, seed, low, high, in).as_copy_in(context);
    };
    for (const size_t i : {0, 1}) {
      Norm& norm = norms[i];
      norm.data = make(shape, 20 * i + 1, -2 + static_cast<double>(i), 2, dtype);
      norm.gamma = make(channels, 20 * i + 2, 0.5, 2, type);
      norm.beta = make(channels, 20 * i + 3, -1, 1, type);
      norm.moving_mean = make(channels, 20 * i + 4, -1, 1, type);
      norm.moving_var = make(channels, 20 * i + 5, 0.5, 2, type);
      const NDArray values = norm.data.as_copy_in(cpu()).astype(type);
      const Sum over_channels{.axis = Tuple{channel_axis}, .exclude = true};
      norm.sum = symbind::sum(values, over_channels).as_copy_in(context);
      norm.square_sum = symbind::sum(square(values), over_channels).as_copy_in(context);
    }
    out_grad = make(shape, 50, -1, 1, dtype);
    more_grad = make(shape, 51, -1, 1, dtype);
  }

  // The states of both, to be updated.
  std::vector<NDArray> states() const {
    std::vector<NDArray> all;
    for (const Norm& norm : norms) all.insert(all.end(), {norm.moving_mean.copy(), norm.moving_var.copy()});
    return all;
  }
  std::vector<NDArray> forward_inputs(const BatchNormPair& p, const std::vector<NDArray>& states) const {
    std::vector<NDArray> inputs;
    for (const size_t i : {0, 1}) {
      inputs.insert(inputs.end(), {norms[i].data, norms[i].gamma, norms[i].beta});
      if (i == 0 ? p.given_sums : p.other_given_sums) inputs.insert(inputs.end(), {norms[i].sum, norms[i].square_sum});
    }
    inputs.insert(inputs.end(), states.begin(), states.end());
    return inputs;
  }
  // Each norm's data, gamma and given statistics.
  std::vector<NDArray> norm_inputs(size_t i) const {
    return {norms[i].data, norms[i].gamma, norms[i].moving_mean, norms[i].moving_var};
  }
};

inline void append(std::vector<NDArray>& arrays, const std::vector<NDArray>& more) {
  arrays.insert(arrays.end(), more.begin(), more.end());
}

// Output, statistics of both, then the updated states.
inline std::vector<NDArray> forward_of_pair(const PairArrays& arrays, const BatchNormPair& p, bool is_train = true) {
  const std::vector<NDArray> states = arrays.states();
  std::vector<NDArray> results = invoke(batch_norm_pair, arrays.forward_inputs(p, states), p, {.is_train = is_train});
  append(results, states);
  return results;
}
// The same by the operators that it replaces; with signs those of the output, from the CPU.
inline std::vector<NDArray> forward_of_each(const PairArrays& arrays, const BatchNormPair& p, bool is_train = true) {
  BatchNorm norm = p;
  norm.output_mean_var = true;
  const std::vector<NDArray> states = arrays.states();
  std::vector<NDArray> made[2];
  for (const size_t i : {0, 1}) {
    const PairArrays::Norm& of = arrays.norms[i];
    made[i] = invoke(batch_norm, {of.data, of.gamma, of.beta, states[2 * i], states[2 * i + 1]}, norm,
                     {.is_train = is_train});
  }
  std::vector<NDArray> results{activation(elemwise_add(made[0][0], made[1][0]), {.act_type = act_type::relu}),
                               made[0][1], made[0][2], made[1][1], made[1][2]};
  if (p.signs) results.push_back(relu_signs(results[0].as_copy_in(cpu()), {p.axis}));
  append(results, states);
  return results;
}

// The gradients, given `results`: the output of forward, or its signs.
inline std::vector<NDArray> gradients_of_pair(const PairArrays& arrays, const BatchNormPairGrad& p,
                                              const NDArray& results) {
  std::vector<NDArray> inputs{arrays.out_grad, results};
  for (const size_t i : {0, 1}) append(inputs, arrays.norm_inputs(i));
  if (p.two_grads) inputs.push_back(arrays.more_grad);
  return invoke(batch_norm_pair_grad, inputs, p, {.is_train = true});
}
// The same in the same order by the operators that it replaces.
inline std::vector<NDArray> gradients_of_each(const PairArrays& arrays, const BatchNormPairGrad& p,
                                              const NDArray& results) {
  std::vector<NDArray> inputs{arrays.out_grad, results};
  append(inputs, arrays.norm_inputs(0));
  if (p.two_grads) inputs.push_back(arrays.more_grad);
  const BatchNormAddReluGrad with_relu{p, p.two_grads};
  const auto first = p.signs ? invoke(batch_norm_signs_grad, inputs, {with_relu}, {.is_train = true})
                             : invoke(batch_norm_add_relu_grad, inputs, with_relu, {.is_train = true});
  std::vector<NDArray> second_inputs{first[3]};
  append(second_inputs, arrays.norm_inputs(1));
  const auto second = invoke(batch_norm_grad, second_inputs, {p}, {.is_train = true});
  return {first[0], first[1], first[2], second[0], second[1], second[2], first[3]};
}

// The gradients from given sums: Σ dy and Σ dy·(data - mean) of dy, the array that arrives.
inline std::vector<NDArray> gradients_from_sums(const PairArrays& arrays, const BatchNormPairGradFromSums& p) {
  const int axis = arrays.out_grad.shape().axis(p.axis, "axis");
  const Context context = arrays.out_grad.context();
  const Shape& shape = arrays.out_grad.shape();
  const int64_t inner = shape.size(axis + 1, shape.rank());
  const std::vector<double> dy = arrays.out_grad.to_vector<double>();
  std::vector<NDArray> sums;
  const auto add_up = [&](auto term_of) {
    std::vector<double> totals(static_cast<size_t>(shape[axis]));
    for (size_t i = 0; i < dy.size(); ++i) {
      const auto channel = static_cast<size_t>(static_cast<int64_t>(i) / inner % shape[axis]);
      totals[channel] += dy[i] * term_of(i, channel);
    }
    NDArray made({shape[axis]}, cpu(), arrays.norms[0].gamma.dtype());
    made.copy_from(totals);
    sums.push_back(made.as_copy_in(context));
  };
  add_up([](size_t, size_t) { return 1.0; });
  for (const PairArrays::Norm& norm : arrays.norms) {
    const std::vector<double> data = norm.data.to_vector<double>(), mean = norm.moving_mean.to_vector<double>();
    add_up([&](size_t i, size_t channel) { return data[i] - mean[channel]; });
  }
  std::vector<NDArray> inputs{arrays.out_grad};
  append(inputs, arrays.norm_inputs(0));
  append(inputs, {sums[0], sums[1]});
  append(inputs, arrays.norm_inputs(1));
  if (p.other_sum) inputs.push_back(sums[2]);
  return invoke(batch_norm_pair_grad_from_sums, inputs, p, {.is_train = true});
}
// The same by two gradients of BatchNorm.
inline std::vector<NDArray> gradients_of_two(const PairArrays& arrays, const BatchNorm& p) {
  std::vector<NDArray> all;
  for (const size_t i : {0, 1}) {
    std::vector<NDArray> inputs{arrays.out_grad};
    append(inputs, arrays.norm_inputs(i));
    append(all, invoke(batch_norm_grad, inputs, {p}, {.is_train = true}));
  }
  return all;
}

}  // namespace symbind::testing
