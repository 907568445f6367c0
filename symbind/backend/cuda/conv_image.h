// Convolutions over the few channels of an image in 16 bits and TF32, and their weight gradients, by kernels of our own
// on tensor cores. The library's kernels need several times as long as reading and writing the arrays takes: they do
// not fill their tiles with so few channels.
#pragma once

#include <memory>
#include <vector>

#include "symbind/backend/cuda/conv_plan.h"

namespace symbind::cuda_backend {

// The forms of the kernel that suit a problem, by number: the rows of the output that a block computes together. None:
// it is another kind of convolution, or the rows do not fit into shared memory. Which of them is the fastest is
// measured.
std::vector<int> image_forms(const CudaDevice& device, const ConvolutionProblem& problem);

// The device is the current one.
std::unique_ptr<ConvolutionPlan> make_image_plan(const CudaDevice& device, const ConvolutionProblem& problem, int form);

}  // namespace symbind::cuda_backend
