// Launches that overlap: a kernel is scheduled while the one before it on the stream still runs, which hides what a
// launch costs (programmatic dependent launch, from compute capability 9.0 on). The first kernel calls
// let_next_start(), and the second wait_for_previous() before it writes memory. Before that it may read only what was
// complete when the first kernel of such a chain, which is queued normally, started. All must be kernels of ours, one
// right after the other on the stream.
#pragma once

#include <type_traits>
#include <utility>

#include <cuda_runtime.h>

namespace symbind::cuda_backend {

// The next kernel may be scheduled from now on, as far as there is room beside this one.
__device__ inline void let_next_start() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  cudaTriggerProgrammaticLaunchCompletion();
#endif
}

// Returns when all of the kernel before has run and its memory is visible.
__device__ inline void wait_for_previous() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  cudaGridDependencySynchronize();
#endif
}

// Was the code that this GPU runs for the kernel compiled so that it waits? Code for older GPUs does not, whatever runs
// it.
template <class... Parameters>
bool waits_for_previous(void (*kernel)(Parameters...)) {
  cudaFuncAttributes attributes{};
  const bool known = cudaFuncGetAttributes(&attributes, kernel) == cudaSuccess;
  return known && attributes.ptxVersion >= 90 && attributes.binaryVersion >= 90;
}

// Launches a kernel right after another one of ours. Errors are those of cudaGetLastError, as of any launch.
template <class... Parameters, class... Arguments>
void launch_after_ours(void (*kernel)(Parameters...), dim3 grid, dim3 block, cudaStream_t stream,
                       Arguments&&... arguments) {
  cudaLaunchAttribute overlap{};
  overlap.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  overlap.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = grid;
  config.blockDim = block;
  config.stream = stream;
  config.attrs = &overlap;
  config.numAttrs = waits_for_previous(kernel) ? 1 : 0;
  cudaLaunchKernelEx(&config, kernel, std::forward<Arguments>(arguments)...);
}

}  // namespace symbind::cuda_backend
