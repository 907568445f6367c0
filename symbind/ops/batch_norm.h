// BatchNorm: normalizes every channel of a batch to mean beta and standard deviation gamma.
#pragma once

#include "symbind/graph/builder.h"
#include "symbind/ops/composition.h"

namespace SYMBIND_API symbind {

// Outputs: output, mean, var. As in MXNet, `var` is the reciprocal standard deviation 1 / sqrt(variance + eps), which
// the gradient needs. In training mean and var are the batch's statistics, otherwise the moving ones. Inputs: data,
// gamma, beta, then the auxiliary states moving_mean (3) and moving_var (4), the biased variance.
struct BatchNorm {
  double eps = 0.0010000000474974513;  // 1e-3 as a float, as in MXNet
  double momentum = 0.9;
  bool fix_gamma = true;
  bool use_global_stats = false;
  bool output_mean_var = false;
  int64_t axis = 1;
  bool cudnn_off = false;
  std::optional<double> min_calib_range = {};
  std::optional<double> max_calib_range = {};
};
inline constexpr Builder<BatchNorm> batch_norm;

// (out_grad, data, gamma, mean, var) → data_grad, gamma_grad, beta_grad. Whether mean and var depend on the data
// follows from use_global_stats and is_train, as in forward.
struct BatchNormGrad : BatchNorm {};
inline constexpr Builder<BatchNormGrad> batch_norm_grad;

// Made by the fuse pass: max(0, BatchNorm), and its gradient. Where the result was zero is recomputed from the data, so
// no mask is stored. With with_sum another array is added to the gradient of the data.
struct BatchNormRelu : BatchNorm {};
inline constexpr Builder<BatchNormRelu> batch_norm_relu;
// (out_grad, data, gamma, beta, mean, var, [sum]) → data_grad, gamma_grad, beta_grad
struct BatchNormReluGrad : BatchNorm {
  bool with_sum = false;
};
inline constexpr Builder<BatchNormReluGrad> batch_norm_relu_grad;

// Made by the fuse pass where the device has a kernel for it: max(0, BatchNorm(data) + sum), the end of a residual
// unit, and its gradient, which also returns that of the sum. Inputs: data, gamma, beta, sum, then the auxiliary
// states.
struct BatchNormAddRelu : BatchNorm {};
inline constexpr Builder<BatchNormAddRelu> batch_norm_add_relu;
// (out_grad, output, data, gamma, mean, var, [more_grad]) → data_grad, gamma_grad, beta_grad, sum_grad. The gradient of
// the output is out_grad, with two_grads the sum of out_grad and more_grad.
struct BatchNormAddReluGrad : BatchNorm {
  bool two_grads = false;
};
inline constexpr Builder<BatchNormAddReluGrad> batch_norm_add_relu_grad;
// Made by the fuse pass where the device computes a convolution's result and its sums per channel together
// (ops/conv_statistics.h): BatchNorm of that result, with `add` plus another array, with `relu` of at least 0. Inputs:
// data, gamma, beta, channel_sum and channel_square_sum of the data, [sum], then the auxiliary states. The sums only
// save a pass over the data; an implementation may ignore them.
struct BatchNormGivenSums : BatchNorm {
  bool add = false, relu = false;
};
inline constexpr Builder<BatchNormGivenSums> batch_norm_given_sums;

// As networks of other operators.
Symbol network_of(const BatchNormAddRelu& params, const ComposedInputs& in);
Symbol network_of(const BatchNormAddReluGrad& params, const ComposedInputs& in);
Symbol network_of(const BatchNormGivenSums& params, const ComposedInputs& in);

// An array of known shape seen as (outer, channels, inner) around the channel axis.
struct BatchNormSize {
  int64_t outer, channels, inner;
  int64_t per_channel() const { return outer * inner; }
};
BatchNormSize size_of(const BatchNorm& params, const Shape& data);
// Does the node normalise with the batch's own statistics?
inline bool uses_batch_statistics(const BatchNorm& params, bool is_train) {
  return is_train && !params.use_global_stats;
}

}  // namespace symbind
