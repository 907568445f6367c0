#include "symbind/backend/cuda/rnn_plan.h"

namespace symbind::cuda_backend {

std::shared_ptr<RnnPlan> find_rnn(CudaDevice&, const RnnProblem&, std::string* reason) {
  *reason = "built without cuDNN";
  return nullptr;
}

}  // namespace symbind::cuda_backend
