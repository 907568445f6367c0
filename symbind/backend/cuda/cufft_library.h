// cuFFT, loaded when a Fourier transform is first planned on a GPU. The functions have the vendor's names, which they
// hide in this namespace: nothing here links against the library.
#pragma once

#include <cufft.h>

#include "symbind/backend/cuda/cuda_library.h"
#include "symbind/core/shared_library.h"

namespace symbind::cuda_backend {

inline constinit SharedLibrary cufft(cuda_library("cuFFT", "libcufft.so", CUFFT_VER_MAJOR,
                                                  "install the cuFFT of the CUDA toolkit that Symbind was built with"));

inline constinit SharedFunction<decltype(&::cufftCreate)> cufftCreate{cufft, "cufftCreate"};
inline constinit SharedFunction<decltype(&::cufftDestroy)> cufftDestroy{cufft, "cufftDestroy"};
inline constinit SharedFunction<decltype(&::cufftExecC2C)> cufftExecC2C{cufft, "cufftExecC2C"};
inline constinit SharedFunction<decltype(&::cufftExecZ2Z)> cufftExecZ2Z{cufft, "cufftExecZ2Z"};
inline constinit SharedFunction<decltype(&::cufftMakePlanMany64)> cufftMakePlanMany64{cufft, "cufftMakePlanMany64"};
inline constinit SharedFunction<decltype(&::cufftSetAutoAllocation)> cufftSetAutoAllocation{cufft,
                                                                                            "cufftSetAutoAllocation"};
inline constinit SharedFunction<decltype(&::cufftSetStream)> cufftSetStream{cufft, "cufftSetStream"};
inline constinit SharedFunction<decltype(&::cufftSetWorkArea)> cufftSetWorkArea{cufft, "cufftSetWorkArea"};

}  // namespace symbind::cuda_backend
