// The passes over the result of a convolution that add up numbers per channel, where the convolution's kernel does not.
#pragma once

#include "symbind/backend/cuda/conv_plan.h"

namespace symbind::cuda_backend {

size_t output_sums_bytes(const ConvolutionProblem& problem);  // scratch memory
// The sums of each channel's elements and of their squares, in float (of float64 results in double). Any alignment.
void queue_output_sums(cudaStream_t stream, const ConvolutionProblem& problem, const void* output, void* sum,
                       void* square_sum, void* scratch);

size_t relu_gradient_bytes(const ConvolutionProblem& problem);  // scratch memory
// The epilogue of a data gradient: arrays.data becomes the gradient of the ReLU. Not in float64.
void queue_relu_gradient(cudaStream_t stream, const ConvolutionProblem& problem, const ConvolutionArrays& arrays,
                         void* scratch);

}  // namespace symbind::cuda_backend
