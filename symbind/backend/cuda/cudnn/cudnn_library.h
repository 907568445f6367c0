// cuDNN, loaded when a convolution is first planned on a GPU. The functions have the names of the vendor's, which they
// hide in this namespace: nothing here links against the library.
#pragma once

#include <cudnn.h>

#include "symbind/core/shared_library.h"

namespace symbind::cuda_backend::cudnn {

inline constinit SharedLibrary cudnn_library({.title = "cuDNN",
                                              .file = "libcudnn.so",
                                              .version = CUDNN_MAJOR,
                                              .remedy = "install cuDNN 9 for the CUDA that Symbind was built with",
                                              .usual_folder = "/usr/local/cuda/lib64"});

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
inline constinit SharedFunction<decltype(&::cudnnSetStream)> cudnnSetStream{cudnn_library, "cudnnSetStream"};

}  // namespace symbind::cuda_backend::cudnn
