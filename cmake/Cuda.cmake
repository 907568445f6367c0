# Finds CUDA, enables its language and sets SYMBIND_HAVE_CUDA. C++20 in kernels needs CUDA 12; loading kernels compiled at run time
# without linking the driver needs 12.8.

include(CudaArchitectures)
include(Cudnn)

set(SYMBIND_HAVE_CUDA OFF)
set(SYMBIND_CUDA_SUMMARY "off")

if(SYMBIND_CUDA)
  include(CheckLanguage)
  find_package(CUDAToolkit 12.8 QUIET)
  # Must be set before the language is enabled: the default of older CMakes is an architecture newer CUDAs have dropped.
  if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES AND "$ENV{CUDAARCHS}" STREQUAL "")
    symbind_default_architectures(architectures "${CUDAToolkit_NVCC_EXECUTABLE}")
    set(CMAKE_CUDA_ARCHITECTURES "${architectures}" CACHE STRING "GPU architectures to build for")
  endif()
  check_language(CUDA)
  set(missing_libraries)
  foreach(library cublas cublasLt cusolver cufft nvrtc)
    if(NOT TARGET CUDA::${library})
      list(APPEND missing_libraries ${library})
    endif()
  endforeach()
  if(CUDAToolkit_FOUND AND CMAKE_CUDA_COMPILER AND NOT missing_libraries)
    # nvcc's -O is for host code, which here only launches kernels; kernels are always fully optimised.
    set(CMAKE_CUDA_FLAGS_RELEASE "-O1 -DNDEBUG" CACHE STRING "Flags of nvcc in release builds")
    enable_language(CUDA)
    # ccache makes a path relative only where it is an argument of its own: not in nvcc's usual -isystem=path.
    set(CMAKE_INCLUDE_SYSTEM_FLAG_CUDA "-isystem ")
    set(SYMBIND_HAVE_CUDA ON)
    symbind_find_cudnn()
    set(SYMBIND_CUDA_SUMMARY "${CUDAToolkit_VERSION} (${CMAKE_CUDA_ARCHITECTURES}) ${SYMBIND_CUDNN_SUMMARY}")
  elseif(SYMBIND_CUDA STREQUAL "AUTO")
    set(SYMBIND_CUDA_SUMMARY "not found")
    if(CUDAToolkit_FOUND AND CMAKE_CUDA_COMPILER)
      list(JOIN missing_libraries ", " names)
      set(SYMBIND_CUDA_SUMMARY "incomplete: without ${names}")
    endif()
  else()
    message(FATAL_ERROR "SYMBIND_CUDA is ON, but CUDA 12.8 or newer with cuBLAS, cuSOLVER, cuFFT and NVRTC was not found: put nvcc on the PATH.")
  endif()
endif()
if(SYMBIND_CUDNN AND NOT SYMBIND_CUDNN STREQUAL "AUTO" AND NOT SYMBIND_HAVE_CUDA)
  message(FATAL_ERROR "SYMBIND_CUDNN is ON, but the GPU backend is not built: CUDA ${SYMBIND_CUDA_SUMMARY}.")
endif()

# CUDA's runtime is linked statically and opens the driver itself; its symbols are hidden. cuBLAS, cuSOLVER, cuFFT, NVRTC and
# cuDNN are opened when a GPU first needs them (core/shared_library.h), so only their headers are used here: a program starts
# where none of them is installed.
function(symbind_link_cuda target)
  set_target_properties(${target} PROPERTIES CUDA_RUNTIME_LIBRARY None LINKER_LANGUAGE CXX)
  target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:CUDA::cudart_static>)
  symbind_cuda_rpath(folders)
  set_target_properties(${target} PROPERTIES BUILD_RPATH "${folders}")
endfunction()

# symbind_compile_cuda(target): how its kernels are compiled.
function(symbind_compile_cuda target)
  # Not by CUDA_STANDARD: CMakes before 3.25.2 do not know that nvcc has C++20.
  # Relaxed constexpr: device code calls the functions that the CPU's kernels use too (backend/functions.h).
  target_compile_options(${target} PRIVATE
    $<$<COMPILE_LANGUAGE:CUDA>:-std=c++20;--expt-relaxed-constexpr;--extended-lambda>)
  # Elementwise operators give the same bits alone and in a program (backend/cuda/pointwise.cc): neither contracts
  # products and sums.
  foreach(family activation broadcast elementwise leaky_relu scalar)
    set_property(SOURCE "${PROJECT_SOURCE_DIR}/symbind/backend/cuda/${family}.cu"
      APPEND PROPERTY COMPILE_OPTIONS --fmad=false)
  endforeach()
  # Which boxes overlap enough, and which pixels a cell covers, is a matter of the last digit: the same as on a CPU.
  foreach(family boxes multibox proposal psroi_pool roi_align)
    set_property(SOURCE "${PROJECT_SOURCE_DIR}/symbind/backend/cuda/${family}.cu"
      APPEND PROPERTY COMPILE_OPTIONS --fmad=false)
  endforeach()
  # Nor do places in images, which may be on the border between two pixels, and sums that are rounded to bytes: the CPU
  # chooses the same.
  foreach(family image spatial)
    set_property(SOURCE "${PROJECT_SOURCE_DIR}/symbind/backend/cuda/${family}.cu"
      APPEND PROPERTY COMPILE_OPTIONS --fmad=false)
  endforeach()
  # What programs include.
  symbind_embed_sources("${PROJECT_BINARY_DIR}/generated/symbind/embedded/pointwise_headers.inc"
    symbind/backend/freestanding.h symbind/backend/vector_math.h symbind/backend/functions.h
    symbind/backend/cuda/elements.cuh)
  if(SYMBIND_HAVE_CUDNN)
    target_include_directories(${target} SYSTEM PRIVATE "${SYMBIND_CUDNN_INCLUDE_DIR}")
  endif()
endfunction()

# The folders where this machine has the libraries that are opened later: the last places that the loader searches.
function(symbind_cuda_rpath out)
  set(folders ${CUDAToolkit_LIBRARY_DIR})
  if(SYMBIND_HAVE_CUDNN)
    cmake_path(GET SYMBIND_CUDNN_LIBRARY PARENT_PATH folder)
    list(APPEND folders "${folder}")
  endif()
  if(SYMBIND_HAVE_NCCL AND SYMBIND_NCCL_LIBRARY)
    cmake_path(GET SYMBIND_NCCL_LIBRARY PARENT_PATH folder)
    list(APPEND folders "${folder}")
  endif()
  list(REMOVE_DUPLICATES folders)
  set(${out} ${folders} PARENT_SCOPE)
endfunction()
