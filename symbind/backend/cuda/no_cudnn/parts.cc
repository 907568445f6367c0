#include "symbind/backend/cuda/cudnn_part.h"
#include "symbind/core/error.h"

namespace symbind::cuda_backend {

Part cudnn_part() {
  return {"cuDNN", false, join("built without it: ", how_to_get_cudnn.data(), " and build Symbind again")};
}

}  // namespace symbind::cuda_backend
