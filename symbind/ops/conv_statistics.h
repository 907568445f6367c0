// Convolutions that also return the sums per channel that a BatchNorm beside them needs. Only the fuse pass creates
// them.
#pragma once

#include "symbind/ops/batch_norm.h"
#include "symbind/ops/composition.h"
#include "symbind/ops/conv.h"

namespace symbind {

// Inputs as Convolution's. Outputs: output; channel_sum and channel_square_sum, the sums of each channel's elements and
// of their squares over the batch, in float32 for results of 16 bits. A library may sum the elements before it rounds
// them to 16 bits.
struct ConvolutionStatistics : Convolution {};
inline constexpr Builder<ConvolutionStatistics> convolution_statistics;

// (out_grad, weight, data for its shape, more_grad, activation, norm_data, mean) → sum_grad, grad_sum, grad_away_sum:
// the gradient of a convolution's data and of the ReLU that computed this data, `activation`, from a sum with a
// BatchNorm. sum_grad is the gradient of the data plus more_grad where the activation is above zero, and 0 elsewhere;
// the others are the sums per channel of sum_grad and of sum_grad · (norm_data - mean), in float32 for 16 bits. The
// activation may be given by its signs (ops/relu_signs.h).
struct ConvolutionGradAddRelu : Convolution {
  bool signs = false;
};
inline constexpr Builder<ConvolutionGradAddRelu> convolution_grad_add_relu;

// (out_grad, data, gamma, mean, var, grad_sum, grad_away_sum) → data_grad, gamma_grad, beta_grad: the gradient of that
// BatchNorm, which is given these sums. They only save a pass over the arrays; an implementation may ignore them.
struct BatchNormGradFromSums : BatchNorm {};
inline constexpr Builder<BatchNormGradFromSums> batch_norm_grad_from_sums;

// As networks of other operators.
Symbol network_of(const ConvolutionStatistics& params, const ComposedInputs& in);
Symbol network_of(const ConvolutionGradAddRelu& params, const ComposedInputs& in);
Symbol network_of(const BatchNormGradFromSums& params, const ComposedInputs& in);

}  // namespace symbind
