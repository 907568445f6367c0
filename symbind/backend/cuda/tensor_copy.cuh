// Tensor copies (TMA), from compute capability 9.0 on: boxes of an array of four axes, copied to shared memory by the
// hardware. One thread queues a box, no thread waits for its addresses or moves it, and what is outside of the array
// becomes zero. Code for older GPUs has none of this and must not be run: see is_built_for_9_0() of launch.cuh.
#pragma once

#include <cstdint>

#include <cuda.h>

#include "symbind/backend/cuda/barrier.cuh"

namespace symbind::cuda_backend {

#if SYMBIND_BUILT_FOR_9_0 && defined(__CUDACC__)
namespace tensor_copy {

// Shared memory that threads have written or read may be written by copies after this, and the block's barrier.
__device__ inline void release_memory() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

// Queues the box that begins at these elements, the innermost axis first, which may be outside of the array.
__device__ inline void copy_box(uint32_t to, const CUtensorMap& map, const int (&begin)[4], uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4, %5}], "
      "[%6];" ::"r"(to),
      "l"(&map), "r"(begin[0]), "r"(begin[1]), "r"(begin[2]), "r"(begin[3]), "r"(barrier)
      : "memory");
}

}  // namespace tensor_copy
#endif

}  // namespace symbind::cuda_backend
