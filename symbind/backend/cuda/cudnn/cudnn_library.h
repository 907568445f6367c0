// cuDNN, loaded when a convolution or a recurrent layer is first planned on a GPU. The functions have the vendor's
// names, which they hide in this namespace: nothing here links against the library.
#pragma once

#include <cudnn.h>

#include "symbind/backend/cuda/cuda_library.h"
#include "symbind/backend/cuda/cudnn_part.h"
#include "symbind/core/shared_library.h"

namespace symbind::cuda_backend::cudnn {

inline constinit SharedLibrary cudnn_library(cuda_library("cuDNN", "libcudnn.so", CUDNN_MAJOR,
                                                          how_to_get_cudnn.data()));

inline constinit SharedFunction<decltype(&::cudnnBackendCreateDescriptor)> cudnnBackendCreateDescriptor{
    cudnn_library, "cudnnBackendCreateDescriptor"};
inline constinit SharedFunction<decltype(&::cudnnBackendDestroyDescriptor)> cudnnBackendDestroyDescriptor{
    cudnn_library, "cudnnBackendDestroyDescriptor"};
inline constinit SharedFunction<decltype(&::cudnnBackendExecute)> cudnnBackendExecute{cudnn_library,
                                                                                      "cudnnBackendExecute"};
inline constinit SharedFunction<decltype(&::cudnnBackendFinalize)> cudnnBackendFinalize{cudnn_library,
                                                                                        "cudnnBackendFinalize"};
inline constinit SharedFunction<decltype(&::cudnnBackendGetAttribute)> cudnnBackendGetAttribute{
    cudnn_library, "cudnnBackendGetAttribute"};
inline constinit SharedFunction<decltype(&::cudnnBackendSetAttribute)> cudnnBackendSetAttribute{
    cudnn_library, "cudnnBackendSetAttribute"};
inline constinit SharedFunction<decltype(&::cudnnCreate)> cudnnCreate{cudnn_library, "cudnnCreate"};
inline constinit SharedFunction<decltype(&::cudnnDestroy)> cudnnDestroy{cudnn_library, "cudnnDestroy"};
inline constinit SharedFunction<decltype(&::cudnnGetErrorString)> cudnnGetErrorString{cudnn_library,
                                                                                      "cudnnGetErrorString"};
inline constinit SharedFunction<decltype(&::cudnnGetVersion)> cudnnGetVersion{cudnn_library, "cudnnGetVersion"};
inline constinit SharedFunction<decltype(&::cudnnSetStream)> cudnnSetStream{cudnn_library, "cudnnSetStream"};

// Recurrent layers.
inline constinit SharedFunction<decltype(&::cudnnCreateDropoutDescriptor)> cudnnCreateDropoutDescriptor{
    cudnn_library, "cudnnCreateDropoutDescriptor"};
inline constinit SharedFunction<decltype(&::cudnnCreateRNNDataDescriptor)> cudnnCreateRNNDataDescriptor{
    cudnn_library, "cudnnCreateRNNDataDescriptor"};
inline constinit SharedFunction<decltype(&::cudnnCreateRNNDescriptor)> cudnnCreateRNNDescriptor{
    cudnn_library, "cudnnCreateRNNDescriptor"};
inline constinit SharedFunction<decltype(&::cudnnCreateTensorDescriptor)> cudnnCreateTensorDescriptor{
    cudnn_library, "cudnnCreateTensorDescriptor"};
inline constinit SharedFunction<decltype(&::cudnnDestroyDropoutDescriptor)> cudnnDestroyDropoutDescriptor{
    cudnn_library, "cudnnDestroyDropoutDescriptor"};
inline constinit SharedFunction<decltype(&::cudnnDestroyRNNDataDescriptor)> cudnnDestroyRNNDataDescriptor{
    cudnn_library, "cudnnDestroyRNNDataDescriptor"};
inline constinit SharedFunction<decltype(&::cudnnDestroyRNNDescriptor)> cudnnDestroyRNNDescriptor{
    cudnn_library, "cudnnDestroyRNNDescriptor"};
inline constinit SharedFunction<decltype(&::cudnnDestroyTensorDescriptor)> cudnnDestroyTensorDescriptor{
    cudnn_library, "cudnnDestroyTensorDescriptor"};
inline constinit SharedFunction<decltype(&::cudnnGetRNNTempSpaceSizes)> cudnnGetRNNTempSpaceSizes{
    cudnn_library, "cudnnGetRNNTempSpaceSizes"};
inline constinit SharedFunction<decltype(&::cudnnGetRNNWeightParams)> cudnnGetRNNWeightParams{
    cudnn_library, "cudnnGetRNNWeightParams"};
inline constinit SharedFunction<decltype(&::cudnnGetRNNWeightSpaceSize)> cudnnGetRNNWeightSpaceSize{
    cudnn_library, "cudnnGetRNNWeightSpaceSize"};
inline constinit SharedFunction<decltype(&::cudnnRNNBackwardData_v8)> cudnnRNNBackwardData_v8{
    cudnn_library, "cudnnRNNBackwardData_v8"};
inline constinit SharedFunction<decltype(&::cudnnRNNBackwardWeights_v8)> cudnnRNNBackwardWeights_v8{
    cudnn_library, "cudnnRNNBackwardWeights_v8"};
inline constinit SharedFunction<decltype(&::cudnnRNNForward)> cudnnRNNForward{cudnn_library, "cudnnRNNForward"};
inline constinit SharedFunction<decltype(&::cudnnSetDropoutDescriptor)> cudnnSetDropoutDescriptor{
    cudnn_library, "cudnnSetDropoutDescriptor"};
inline constinit SharedFunction<decltype(&::cudnnSetRNNDataDescriptor)> cudnnSetRNNDataDescriptor{
    cudnn_library, "cudnnSetRNNDataDescriptor"};
inline constinit SharedFunction<decltype(&::cudnnSetRNNDescriptor_v8)> cudnnSetRNNDescriptor_v8{
    cudnn_library, "cudnnSetRNNDescriptor_v8"};
inline constinit SharedFunction<decltype(&::cudnnSetTensorNdDescriptor)> cudnnSetTensorNdDescriptor{
    cudnn_library, "cudnnSetTensorNdDescriptor"};

}  // namespace symbind::cuda_backend::cudnn
