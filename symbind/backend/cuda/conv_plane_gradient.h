// The weight gradient of 3 × 3 convolutions in TF32 by a kernel of our own, from compute capability 9.0 on. The library
// needs two to four times as long for it as for the same products forward: the positions, over which a weight gradient
// sums, are not neighbours in memory, and its instructions for float32 read neighbours.
#pragma once

#include <memory>
#include <vector>

#include "symbind/backend/cuda/conv_plan.h"

namespace symbind::cuda_backend {

// The forms of the kernel that suit a problem, by number; none: it is another kind of convolution, or its rows do not
// fit into shared memory. There is one form; whether it is faster than the library's kernels is measured.
std::vector<int> plane_gradient_forms(const CudaDevice& device, const ConvolutionProblem& problem);

// The device is the current one.
std::unique_ptr<ConvolutionPlan> make_plane_gradient_plan(const CudaDevice& device, const ConvolutionProblem& problem,
                                                          int form);

}  // namespace symbind::cuda_backend
