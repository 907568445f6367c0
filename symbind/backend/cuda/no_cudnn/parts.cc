#include "symbind/backend/cuda/cudnn_part.h"

namespace symbind::cuda_backend {

Part cudnn_part() {
  return {"cuDNN", false, "built without it: install cuDNN 9 (PyPI: nvidia-cudnn-cu13) and build Symbind again"};
}

}  // namespace symbind::cuda_backend
