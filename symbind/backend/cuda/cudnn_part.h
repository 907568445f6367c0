// Whether cuDNN can be used. backend/cuda/cudnn supplies it, or its stubs in no_cudnn.
#pragma once

#include <array>

#include <cuda_runtime_api.h>

#include "symbind/core/parts.h"

namespace symbind::cuda_backend {

// "install cuDNN 9 (PyPI: nvidia-cudnn-cu13)", for the CUDA that Symbind was built with.
inline constexpr auto how_to_get_cudnn = [] {
  constexpr int cuda = CUDART_VERSION / 1000;
  auto text = std::to_array("install cuDNN 9 (PyPI: nvidia-cudnn-cu00)");
  text[text.size() - 4] = '0' + cuda / 10;
  text[text.size() - 3] = '0' + cuda % 10;
  return text;
}();

Part cudnn_part();
// Once in a process, and only if it cannot be used: says that convolutions and recurrent layers run by slower kernels.
void warn_without_cudnn();

}  // namespace symbind::cuda_backend
