// The end of a residual unit whose shortcut has a BatchNorm of its own: ReLU of the sum of two BatchNorms, which is
// computed without storing either of them. Only the fuse pass creates these operators. The two norms, of which the
// second is called "other", have the same parameters.
#pragma once

#include "symbind/ops/batch_norm.h"
#include "symbind/ops/composition.h"

namespace symbind {

// max(0, BatchNorm(data) + BatchNorm(other_data)). Inputs: data, gamma, beta, [channel_sum, channel_square_sum], the
// same of the other norm, then the auxiliary states of both. Outputs: output, mean, var, other_mean, other_var,
// [signs]. As of BatchNormGivenSums, sums only save a pass over the data; the signs are those of ops/relu_signs.h.
struct BatchNormPair : BatchNorm {
  bool given_sums = false, other_given_sums = false, signs = false;
};
inline constexpr Builder<BatchNormPair> batch_norm_pair;

// (out_grad, output or signs, data, gamma, mean, var, other_data, other_gamma, other_mean, other_var, [more_grad]) →
// data_grad, gamma_grad, beta_grad, other_data_grad, other_gamma_grad, other_beta_grad, sum_grad. As of
// BatchNormAddReluGrad, sum_grad is the gradient of ReLU, and with two_grads that of the output is a sum.
struct BatchNormPairGrad : BatchNorm {
  bool signs = false, two_grads = false;
};
inline constexpr Builder<BatchNormPairGrad> batch_norm_pair_grad;

// (out_grad, data, gamma, mean, var, grad_sum, grad_away_sum, other_data, other_gamma, other_mean, other_var,
// [other_grad_away_sum]) → the gradients above but sum_grad, which is out_grad here. The sums are those of
// BatchNormGradFromSums; grad_sum is the same for both norms.
struct BatchNormPairGradFromSums : BatchNorm {
  bool other_sum = false;
};
inline constexpr Builder<BatchNormPairGradFromSums> batch_norm_pair_grad_from_sums;

// As networks of other operators.
Symbol network_of(const BatchNormPair& params, const ComposedInputs& in);
Symbol network_of(const BatchNormPairGrad& params, const ComposedInputs& in);
Symbol network_of(const BatchNormPairGradFromSums& params, const ComposedInputs& in);

// Do the norms differ in nothing that the operators above have one parameter for?
bool is_pair(const BatchNorm& first, const BatchNorm& second);

}  // namespace symbind
