// NVRTC, loaded when a program is first compiled on a GPU. The functions have the vendor's names, which they hide in
// this namespace: nothing here links against the library.
#pragma once

#include <cuda_runtime_api.h>
#include <nvrtc.h>

#include "symbind/backend/cuda/cuda_library.h"
#include "symbind/core/shared_library.h"

namespace symbind::cuda_backend {

inline constinit SharedLibrary nvrtc(cuda_library("NVRTC", "libnvrtc.so", CUDART_VERSION / 1000,
                                                  "install the NVRTC of the CUDA toolkit that Symbind was built with"));

inline constinit SharedFunction<decltype(&::nvrtcCompileProgram)> nvrtcCompileProgram{nvrtc, "nvrtcCompileProgram"};
inline constinit SharedFunction<decltype(&::nvrtcCreateProgram)> nvrtcCreateProgram{nvrtc, "nvrtcCreateProgram"};
inline constinit SharedFunction<decltype(&::nvrtcDestroyProgram)> nvrtcDestroyProgram{nvrtc, "nvrtcDestroyProgram"};
inline constinit SharedFunction<decltype(&::nvrtcGetCUBIN)> nvrtcGetCUBIN{nvrtc, "nvrtcGetCUBIN"};
inline constinit SharedFunction<decltype(&::nvrtcGetCUBINSize)> nvrtcGetCUBINSize{nvrtc, "nvrtcGetCUBINSize"};
inline constinit SharedFunction<decltype(&::nvrtcGetErrorString)> nvrtcGetErrorString{nvrtc, "nvrtcGetErrorString"};
inline constinit SharedFunction<decltype(&::nvrtcGetProgramLog)> nvrtcGetProgramLog{nvrtc, "nvrtcGetProgramLog"};
inline constinit SharedFunction<decltype(&::nvrtcGetProgramLogSize)> nvrtcGetProgramLogSize{nvrtc,
                                                                                            "nvrtcGetProgramLogSize"};
inline constinit SharedFunction<decltype(&::nvrtcVersion)> nvrtcVersion{nvrtc, "nvrtcVersion"};

}  // namespace symbind::cuda_backend
