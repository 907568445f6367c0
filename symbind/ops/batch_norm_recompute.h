// Recompute the output of BatchNorm, or of an operator that BatchNorm is a part of, in backward from the statistics
// that forward stored: without reductions, and without updating the moving averages again.
#pragma once

#include "symbind/ops/batch_norm.h"

namespace symbind {

// (data, gamma, beta, mean, var) → output, where `var` is the reciprocal standard deviation, as BatchNorm returns it.
struct BatchNormRecompute {
  bool fix_gamma = true;
  int64_t axis = 1;
  bool relu = false;  // apply ReLU to the output
};
inline constexpr Builder<BatchNormRecompute> batch_norm_recompute;

// The end of a residual unit: max(0, BatchNorm(data) + sum) of (data, gamma, beta, sum, mean, var). Of a pair of norms
// (ops/batch_norm_pair.h) the sum is another BatchNorm: (data, gamma, beta, other_data, other_gamma, other_beta, mean,
// var, other_mean, other_var).
struct BatchNormAddReluRecompute {
  bool fix_gamma = true;
  int64_t axis = 1;
  bool pair = false;
};
inline constexpr Builder<BatchNormAddReluRecompute> batch_norm_add_relu_recompute;

// BatchNormReluGrad that recomputes the output of BatchNormRelu as well: it reads what both need once. Outputs:
// data_grad, gamma_grad, beta_grad, output.
struct BatchNormReluGradOutput : BatchNormReluGrad {};
inline constexpr Builder<BatchNormReluGradOutput> batch_norm_relu_grad_output;

// As networks of other operators.
Symbol network_of(const BatchNormAddReluRecompute& params, const ComposedInputs& in);
Symbol network_of(const BatchNormReluGradOutput& params, const ComposedInputs& in);

// How the output of a norm is recomputed: alone or with ReLU, and with a sum, which is input `sum`.
Recomputation recompute_norm(const BatchNorm& params, bool relu);
Recomputation recompute_norm_add_relu(const BatchNorm& params, int sum);

}  // namespace symbind
