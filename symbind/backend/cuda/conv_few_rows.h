// Convolutions with few positions of the output, as of a single image, in 16 bits by a kernel of our own. The library's
// kernels use a fraction of the GPU for them: they have a block for each tile of the output.
#pragma once

#include <memory>
#include <vector>

#include "symbind/backend/cuda/conv_plan.h"

namespace symbind::cuda_backend {

// The forms of the kernel that suit a problem, by number: ten times the filters of a tile, and the blocks that share a
// tile. None: it is another kind of convolution, it has enough positions to fill the GPU, or the GPU or the build has
// no clusters. Which of them is the fastest is measured.
std::vector<int> few_rows_forms(const CudaDevice& device, const ConvolutionProblem& problem);

// The device is the current one.
std::unique_ptr<ConvolutionPlan> make_few_rows_plan(const CudaDevice& device, const ConvolutionProblem& problem,
                                                    int form);

}  // namespace symbind::cuda_backend
