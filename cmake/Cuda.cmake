# Finds CUDA, enables its language and sets SYMBIND_HAVE_CUDA. C++20 in kernels needs CUDA 12; loading kernels compiled
# at run time without linking the driver needs 12.8.

set(SYMBIND_HAVE_CUDA OFF)
set(SYMBIND_CUDA_SUMMARY "off")
if(SYMBIND_CUDA)
  include(CheckLanguage)
  find_package(CUDAToolkit 12.8 QUIET)
  # Must be set before the language is enabled: the default of older CMakes is an architecture newer CUDAs have dropped.
  if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
    set(CMAKE_CUDA_ARCHITECTURES "80-real;90" CACHE STRING "GPU architectures to build for")
  endif()
  check_language(CUDA)
  if(CUDAToolkit_FOUND AND CMAKE_CUDA_COMPILER AND TARGET CUDA::cublasLt AND TARGET CUDA::nvrtc)
    enable_language(CUDA)
    set(SYMBIND_HAVE_CUDA ON)
    set(SYMBIND_CUDA_SUMMARY "${CUDAToolkit_VERSION} (${CMAKE_CUDA_ARCHITECTURES})")
  elseif(SYMBIND_CUDA STREQUAL "AUTO")
    set(SYMBIND_CUDA_SUMMARY "not found")
  else()
    message(FATAL_ERROR "SYMBIND_CUDA is ON, but CUDA 12.8 or newer with cuBLASLt and NVRTC was not found: put nvcc on the PATH.")
  endif()
endif()

# The vendor libraries of symbind/backend/cuda are all listed here.
function(symbind_link_cuda target)
  set_target_properties(${target} PROPERTIES CUDA_RUNTIME_LIBRARY Shared LINKER_LANGUAGE CXX)
  # Not by CUDA_STANDARD: CMakes before 3.25.2 do not know that nvcc has C++20.
  # Relaxed constexpr: device code calls the scalar functions that the CPU's kernels use too (backend/pointwise.h).
  target_compile_options(${target} PRIVATE
    $<$<COMPILE_LANGUAGE:CUDA>:-std=c++20;--expt-relaxed-constexpr;--extended-lambda>)
  target_link_libraries(${target} PRIVATE
    $<BUILD_INTERFACE:CUDA::cudart>
    $<BUILD_INTERFACE:CUDA::cublasLt>
    $<BUILD_INTERFACE:CUDA::nvrtc>)
endfunction()
