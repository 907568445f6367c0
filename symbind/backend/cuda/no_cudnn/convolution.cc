#include "symbind/backend/cuda/conv_plan.h"
#include "symbind/backend/cuda/cudnn_part.h"

namespace symbind::cuda_backend {

std::shared_ptr<ConvolutionPlan> find_convolution(CudaDevice&, const ConvolutionProblem&, std::string* reason) {
  warn_without_cudnn();
  *reason = "built without cuDNN";
  return nullptr;
}

}  // namespace symbind::cuda_backend
