// Tensor copies (TMA), from compute capability 9.0 on: boxes of an array of four axes, copied to shared memory by the
// hardware. One thread queues a box, no thread waits for its addresses or moves it, and what is outside of the array
// becomes zero. Code for older GPUs has none of this and must not be run: see is_built_for_9_0() of launch.cuh.
#pragma once

#include <cstdint>

#include <cuda.h>

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
#define SYMBIND_HAS_TENSOR_COPIES 0
#else
#define SYMBIND_HAS_TENSOR_COPIES 1
#endif

namespace symbind::cuda_backend {

#if SYMBIND_HAS_TENSOR_COPIES && defined(__CUDACC__)
namespace tensor_copy {

// A barrier in shared memory (8 bytes) completes a phase when the bytes that were expected have arrived, and the next
// phase begins. One thread sets it up, and the block synchronizes before it is used.
__device__ inline void set_up(uint32_t barrier) {
  asm volatile(
      "mbarrier.init.shared::cta.b64 [%0], 1;\n\t"
      "fence.mbarrier_init.release.cluster;" ::"r"(barrier)
      : "memory");
}
__device__ inline void expect_bytes(uint32_t barrier, uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}
// Waits for the end of a phase. Its parity: 0 for the first, then 1 and 0 by turns.
__device__ inline void wait(uint32_t barrier, uint32_t parity) {
  uint32_t is_complete = 0;
  while (!is_complete)
    asm volatile(
        "{\n\t"
        ".reg .pred complete;\n\t"
        "mbarrier.try_wait.parity.shared::cta.b64 complete, [%1], %2;\n\t"
        "selp.u32 %0, 1, 0, complete;\n\t"
        "}"
        : "=r"(is_complete)
        : "r"(barrier), "r"(parity)
        : "memory");
}

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
