// The pass over the result of a convolution that applies bias, sum and activation.
#pragma once

#include <string>

#include "symbind/backend/cuda/conv_plan.h"

namespace symbind::cuda_backend {

// output = act_type(output + bias + residual). Null operands and an empty act_type are skipped. Any alignment.
void queue_finish(cudaStream_t stream, const ConvolutionProblem& problem, const std::string& act_type, void* output,
                  const void* residual, const void* bias);

}  // namespace symbind::cuda_backend
