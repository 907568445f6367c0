// cuSOLVER, loaded when a matrix is first factorized on a GPU. The functions have the vendor's names, which they hide
// in this namespace: nothing here links against the library.
#pragma once

#include <cusolverDn.h>

#include "symbind/backend/cuda/cuda_library.h"
#include "symbind/core/shared_library.h"

namespace symbind::cuda_backend {

inline constinit SharedLibrary cusolver(
    cuda_library("cuSOLVER", "libcusolver.so", CUSOLVER_VER_MAJOR,
                 "install the cuSOLVER of the CUDA toolkit that Symbind was built with"));

inline constinit SharedFunction<decltype(&::cusolverDnCreate)> cusolverDnCreate{cusolver, "cusolverDnCreate"};
inline constinit SharedFunction<decltype(&::cusolverDnDestroy)> cusolverDnDestroy{cusolver, "cusolverDnDestroy"};
inline constinit SharedFunction<decltype(&::cusolverDnSetStream)> cusolverDnSetStream{cusolver, "cusolverDnSetStream"};
inline constinit SharedFunction<decltype(&::cusolverDnSpotrfBatched)> cusolverDnSpotrfBatched{
    cusolver, "cusolverDnSpotrfBatched"};
inline constinit SharedFunction<decltype(&::cusolverDnDpotrfBatched)> cusolverDnDpotrfBatched{
    cusolver, "cusolverDnDpotrfBatched"};
inline constinit SharedFunction<decltype(&::cusolverDnSgeqrf_bufferSize)> cusolverDnSgeqrf_bufferSize{
    cusolver, "cusolverDnSgeqrf_bufferSize"};
inline constinit SharedFunction<decltype(&::cusolverDnDgeqrf_bufferSize)> cusolverDnDgeqrf_bufferSize{
    cusolver, "cusolverDnDgeqrf_bufferSize"};
inline constinit SharedFunction<decltype(&::cusolverDnSgeqrf)> cusolverDnSgeqrf{cusolver, "cusolverDnSgeqrf"};
inline constinit SharedFunction<decltype(&::cusolverDnDgeqrf)> cusolverDnDgeqrf{cusolver, "cusolverDnDgeqrf"};
inline constinit SharedFunction<decltype(&::cusolverDnSorgqr_bufferSize)> cusolverDnSorgqr_bufferSize{
    cusolver, "cusolverDnSorgqr_bufferSize"};
inline constinit SharedFunction<decltype(&::cusolverDnDorgqr_bufferSize)> cusolverDnDorgqr_bufferSize{
    cusolver, "cusolverDnDorgqr_bufferSize"};
inline constinit SharedFunction<decltype(&::cusolverDnSorgqr)> cusolverDnSorgqr{cusolver, "cusolverDnSorgqr"};
inline constinit SharedFunction<decltype(&::cusolverDnDorgqr)> cusolverDnDorgqr{cusolver, "cusolverDnDorgqr"};
inline constinit SharedFunction<decltype(&::cusolverDnSsyevd_bufferSize)> cusolverDnSsyevd_bufferSize{
    cusolver, "cusolverDnSsyevd_bufferSize"};
inline constinit SharedFunction<decltype(&::cusolverDnDsyevd_bufferSize)> cusolverDnDsyevd_bufferSize{
    cusolver, "cusolverDnDsyevd_bufferSize"};
inline constinit SharedFunction<decltype(&::cusolverDnSsyevd)> cusolverDnSsyevd{cusolver, "cusolverDnSsyevd"};
inline constinit SharedFunction<decltype(&::cusolverDnDsyevd)> cusolverDnDsyevd{cusolver, "cusolverDnDsyevd"};

}  // namespace symbind::cuda_backend
