#include "symbind/backend/cuda/cudnn/cudnn_library.h"
#include "symbind/backend/cuda/cudnn_part.h"

namespace symbind::cuda_backend {

Part cudnn_part() { return cudnn::cudnn_library.part(); }

}  // namespace symbind::cuda_backend
