// Convolution and its gradients directly from their definition: a thread, or a block, per result. Correct for every
// type, layout, group and number of axes; used if the library has no engine.
#pragma once

#include "symbind/backend/cuda/conv_plan.h"

namespace symbind::cuda_backend {

// As ConvolutionPlan::run, for arrays of any alignment. `weight_last`: is the weight (filters, kernel…, channels)?
void queue_direct_convolution(cudaStream_t stream, const ConvolutionProblem& problem, bool weight_last, void* data,
                              void* weight, void* output);

}  // namespace symbind::cuda_backend
