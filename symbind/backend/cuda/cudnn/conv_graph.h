// A convolution, with its epilogue, as a graph of cuDNN's operations.
#pragma once

#include "symbind/backend/cuda/conv_plan.h"
#include "symbind/backend/cuda/cudnn/descriptor.h"

namespace symbind::cuda_backend::cudnn {

// The arrays of a graph by number.
inline constexpr int64_t data_id = 1, weight_id = 2, output_id = 3, residual_id = 4, bias_id = 5;
inline constexpr int64_t channel_sum_id = 6, channel_square_sum_id = 7;

// Finalized. Fails where cuDNN does not know such a graph.
Descriptor describe_graph(cudnnHandle_t handle, const ConvolutionProblem& problem);

}  // namespace symbind::cuda_backend::cudnn
