// Whether cuDNN can be used. backend/cuda/cudnn supplies it, or its stubs in no_cudnn.
#pragma once

#include "symbind/core/parts.h"

namespace symbind::cuda_backend {

Part cudnn_part();
// Once in a process, and only if it cannot be used: says that convolutions and recurrent layers run by slower kernels.
void warn_without_cudnn();

}  // namespace symbind::cuda_backend
