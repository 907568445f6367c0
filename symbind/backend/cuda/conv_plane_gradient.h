// The weight gradient of 3 × 3 convolutions in TF32 by a kernel of our own, from compute capability 9.0 on. The library
// needs two to four times as long for it as for the same products forward: a weight gradient sums over positions, which
// are not contiguous in memory, and wgmma instructions need float32 operands that are.
#pragma once

#include <memory>
#include <vector>

#include "symbind/backend/cuda/conv_plan.h"

namespace symbind::cuda_backend {

// The forms of the kernel that suit a problem, by number; none: it is another kind of convolution, its rows do not fit
// into shared memory, or the GPU or the build has no tensor copies. There is one form. Whether it is faster than the
// library's kernels is measured; without tuning it is used wherever it suits.
std::vector<int> plane_gradient_forms(const CudaDevice& device, const ConvolutionProblem& problem);

// The device is the current one.
std::unique_ptr<ConvolutionPlan> make_plane_gradient_plan(const CudaDevice& device, const ConvolutionProblem& problem,
                                                          int form);

}  // namespace symbind::cuda_backend
