// Launches that overlap: a kernel is scheduled while the one before it on the stream still runs, which hides what a
// launch costs (programmatic dependent launch, from compute capability 9.0 on). The first kernel calls
// let_next_start(), and the second wait_for_previous() before it writes memory. Before that it may read only what was
// complete when the first kernel of such a chain, which is queued normally, started. After a kernel that does not call
// let_next_start(), as those of libraries, the second starts when the blocks of the first have ended.
//
// And launches in clusters (cluster.cuh).
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

// Was the code that the current GPU runs for the kernel compiled for compute capability 9.0? Code for older GPUs does
// not wait and has no clusters, whatever runs it.
template <class... Parameters>
bool is_built_for_9_0(void (*kernel)(Parameters...)) {
  cudaFuncAttributes attributes{};
  const bool known = cudaFuncGetAttributes(&attributes, kernel) == cudaSuccess;
  return known && attributes.ptxVersion >= 90 && attributes.binaryVersion >= 90;
}

inline cudaLaunchAttribute overlapping_launch() {
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  return attribute;
}

// Launches a kernel right after another one of ours. Errors are those of cudaGetLastError, as of any launch.
template <class... Parameters, class... Arguments>
void launch_after_ours(void (*kernel)(Parameters...), dim3 grid, dim3 block, cudaStream_t stream,
                       Arguments&&... arguments) {
  cudaLaunchAttribute overlap = overlapping_launch();
  cudaLaunchConfig_t config{};
  config.gridDim = grid;
  config.blockDim = block;
  config.stream = stream;
  config.attrs = &overlap;
  config.numAttrs = is_built_for_9_0(kernel) ? 1 : 0;
  cudaLaunchKernelEx(&config, kernel, std::forward<Arguments>(arguments)...);
}

struct ClusterLaunch {
  dim3 grid;    // of blocks; x is a multiple of the cluster
  int cluster;  // blocks in a row
  dim3 block;
  size_t shared_bytes;
  bool overlaps;  // with the kernel queued before
};
// For a kernel that is_built_for_9_0().
template <class... Parameters, class... Arguments>
void launch_clusters(void (*kernel)(Parameters...), const ClusterLaunch& launch, cudaStream_t stream,
                     Arguments&&... arguments) {
  cudaLaunchAttribute attributes[2] = {{}, overlapping_launch()};
  attributes[0].id = cudaLaunchAttributeClusterDimension;
  attributes[0].val.clusterDim.x = static_cast<unsigned>(launch.cluster);
  attributes[0].val.clusterDim.y = attributes[0].val.clusterDim.z = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = launch.grid;
  config.blockDim = launch.block;
  config.dynamicSmemBytes = launch.shared_bytes;
  config.stream = stream;
  config.attrs = attributes;
  config.numAttrs = launch.overlaps ? 2 : 1;
  cudaLaunchKernelEx(&config, kernel, std::forward<Arguments>(arguments)...);
}

}  // namespace symbind::cuda_backend
