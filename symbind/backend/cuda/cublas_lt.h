// cuBLASLt, loaded when a matrix product is first planned on a GPU. The functions have the vendor's names, which they
// hide in this namespace: nothing here links against the library.
#pragma once

#include <cublasLt.h>

#include "symbind/backend/cuda/cuda_library.h"
#include "symbind/core/shared_library.h"

namespace symbind::cuda_backend {

inline constinit SharedLibrary cublas_lt(
    cuda_library("cuBLASLt", "libcublasLt.so", CUBLAS_VER_MAJOR,
                 "install the cuBLAS of the CUDA toolkit that Symbind was built with"));

inline constinit SharedFunction<decltype(&::cublasLtCreate)> cublasLtCreate{cublas_lt, "cublasLtCreate"};
inline constinit SharedFunction<decltype(&::cublasLtDestroy)> cublasLtDestroy{cublas_lt, "cublasLtDestroy"};
inline constinit SharedFunction<decltype(&::cublasLtGetStatusName)> cublasLtGetStatusName{cublas_lt,
                                                                                          "cublasLtGetStatusName"};
inline constinit SharedFunction<decltype(&::cublasLtGetStatusString)> cublasLtGetStatusString{
    cublas_lt, "cublasLtGetStatusString"};
inline constinit SharedFunction<decltype(&::cublasLtMatmul)> cublasLtMatmul{cublas_lt, "cublasLtMatmul"};
inline constinit SharedFunction<decltype(&::cublasLtMatmulAlgoGetHeuristic)> cublasLtMatmulAlgoGetHeuristic{
    cublas_lt, "cublasLtMatmulAlgoGetHeuristic"};
inline constinit SharedFunction<decltype(&::cublasLtMatmulDescCreate)> cublasLtMatmulDescCreate{
    cublas_lt, "cublasLtMatmulDescCreate"};
inline constinit SharedFunction<decltype(&::cublasLtMatmulDescDestroy)> cublasLtMatmulDescDestroy{
    cublas_lt, "cublasLtMatmulDescDestroy"};
inline constinit SharedFunction<decltype(&::cublasLtMatmulDescSetAttribute)> cublasLtMatmulDescSetAttribute{
    cublas_lt, "cublasLtMatmulDescSetAttribute"};
inline constinit SharedFunction<decltype(&::cublasLtMatmulPreferenceCreate)> cublasLtMatmulPreferenceCreate{
    cublas_lt, "cublasLtMatmulPreferenceCreate"};
inline constinit SharedFunction<decltype(&::cublasLtMatmulPreferenceDestroy)> cublasLtMatmulPreferenceDestroy{
    cublas_lt, "cublasLtMatmulPreferenceDestroy"};
inline constinit SharedFunction<decltype(&::cublasLtMatmulPreferenceSetAttribute)> cublasLtMatmulPreferenceSetAttribute{
    cublas_lt, "cublasLtMatmulPreferenceSetAttribute"};
inline constinit SharedFunction<decltype(&::cublasLtMatrixLayoutCreate)> cublasLtMatrixLayoutCreate{
    cublas_lt, "cublasLtMatrixLayoutCreate"};
inline constinit SharedFunction<decltype(&::cublasLtMatrixLayoutDestroy)> cublasLtMatrixLayoutDestroy{
    cublas_lt, "cublasLtMatrixLayoutDestroy"};
inline constinit SharedFunction<decltype(&::cublasLtMatrixLayoutSetAttribute)> cublasLtMatrixLayoutSetAttribute{
    cublas_lt, "cublasLtMatrixLayoutSetAttribute"};

}  // namespace symbind::cuda_backend
