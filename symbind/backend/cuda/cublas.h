// cuBLAS, loaded when an operator of linear algebra is first planned on a GPU. The functions have the vendor's names,
// which they hide in this namespace: nothing here links against the library.
#pragma once

#include <cublas_v2.h>

#include "symbind/backend/cuda/cuda_library.h"
#include "symbind/core/shared_library.h"

namespace symbind::cuda_backend {

inline constinit SharedLibrary cublas(cuda_library(
    "cuBLAS", "libcublas.so", CUBLAS_VER_MAJOR, "install the cuBLAS of the CUDA toolkit that Symbind was built with"));

inline constinit SharedFunction<decltype(&::cublasCreate_v2)> cublasCreate_v2{cublas, "cublasCreate_v2"};
inline constinit SharedFunction<decltype(&::cublasDestroy_v2)> cublasDestroy_v2{cublas, "cublasDestroy_v2"};
inline constinit SharedFunction<decltype(&::cublasGetStatusString)> cublasGetStatusString{cublas,
                                                                                          "cublasGetStatusString"};
inline constinit SharedFunction<decltype(&::cublasSetStream_v2)> cublasSetStream_v2{cublas, "cublasSetStream_v2"};
inline constinit SharedFunction<decltype(&::cublasSgemmStridedBatched)> cublasSgemmStridedBatched{
    cublas, "cublasSgemmStridedBatched"};
inline constinit SharedFunction<decltype(&::cublasDgemmStridedBatched)> cublasDgemmStridedBatched{
    cublas, "cublasDgemmStridedBatched"};
inline constinit SharedFunction<decltype(&::cublasStrsm_v2)> cublasStrsm_v2{cublas, "cublasStrsm_v2"};
inline constinit SharedFunction<decltype(&::cublasDtrsm_v2)> cublasDtrsm_v2{cublas, "cublasDtrsm_v2"};
inline constinit SharedFunction<decltype(&::cublasStrsmBatched)> cublasStrsmBatched{cublas, "cublasStrsmBatched"};
inline constinit SharedFunction<decltype(&::cublasDtrsmBatched)> cublasDtrsmBatched{cublas, "cublasDtrsmBatched"};
inline constinit SharedFunction<decltype(&::cublasSgetrfBatched)> cublasSgetrfBatched{cublas, "cublasSgetrfBatched"};
inline constinit SharedFunction<decltype(&::cublasDgetrfBatched)> cublasDgetrfBatched{cublas, "cublasDgetrfBatched"};
inline constinit SharedFunction<decltype(&::cublasSgetriBatched)> cublasSgetriBatched{cublas, "cublasSgetriBatched"};
inline constinit SharedFunction<decltype(&::cublasDgetriBatched)> cublasDgetriBatched{cublas, "cublasDgetriBatched"};

}  // namespace symbind::cuda_backend
