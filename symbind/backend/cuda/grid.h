// How many blocks a kernel is launched with.
#pragma once

#include <algorithm>
#include <cstdint>

#include <cuda_runtime_api.h>

#include "symbind/backend/cuda/check.h"

namespace symbind::cuda_backend {

inline constexpr int block_size = 256;

// A bound for kernels that stride over their elements: their results do not depend on the number of blocks. At most 8
// blocks of block_size threads are resident on a multiprocessor, so that this many fill GPUs with up to 264 of them.
inline constexpr int64_t most_blocks = 8 * 264;

inline unsigned blocks_for(int64_t count, int64_t per_block = block_size) {
  return static_cast<unsigned>(std::clamp<int64_t>((count + per_block - 1) / per_block, 1, most_blocks));
}

// The multiprocessors of the calling thread's current GPU. A kernel's GPU is current both where the kernel is built
// (target.cc) and where it is queued (step.h), so that scratch memory and the partial sums in it agree.
inline int64_t current_multiprocessors() {
  int device = 0, count = 0;
  check(cudaGetDevice(&device), "asking for the current GPU");
  check(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device), "asking for the multiprocessors");
  return count;
}

}  // namespace symbind::cuda_backend
