#include "symbind/backend/cuda/cudnn_part.h"
#include "symbind/backend/cuda/rnn_plan.h"

namespace symbind::cuda_backend {

std::shared_ptr<RnnPlan> find_rnn(CudaDevice&, const RnnProblem&, std::string* reason) {
  warn_without_cudnn();
  *reason = "built without cuDNN";
  return nullptr;
}

}  // namespace symbind::cuda_backend
