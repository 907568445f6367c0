// 1 × 1 convolutions that also add up the statistics of their channels, and data gradients of 1 × 1 convolutions that
// pass through a ReLU and add up the sums of BatchNorm's gradient, as matrix products of our own. The library has
// compiled engines with statistics only for float16, and their sums differ from run to run.
#pragma once

#include <memory>
#include <vector>

#include "symbind/backend/cuda/conv_plan.h"

namespace symbind::cuda_backend {

// The forms of the kernel that suit a problem, by number; none: it is another kind of convolution, or its weight does
// not fit into shared memory. Which of them is the fastest is measured.
std::vector<int> product_forms(const CudaDevice& device, const ConvolutionProblem& problem);

// The device is the current one.
std::unique_ptr<ConvolutionPlan> make_product_plan(const CudaDevice& device, const ConvolutionProblem& problem,
                                                   int form);

}  // namespace symbind::cuda_backend
