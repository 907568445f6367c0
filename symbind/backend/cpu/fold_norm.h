// BatchNorm with given statistics is a scale and a shift per channel; both can be folded into a convolution's weight
// and bias.
#pragma once

#include "symbind/ops/conv_fused.h"
#include "symbind/passes/target.h"

namespace symbind::cpu_backend {

// Writes the weight and the bias of the plain convolution that is equivalent to this one with its norms, in float32.
// `args` holds the addresses of its inputs: the norms' are float32, weight and bias of the type of `weight`.
void fold_norms(const ConvolutionFused& params, const Tensor& weight, const Args& args, float* folded_weight,
                float* folded_bias);

}  // namespace symbind::cpu_backend
