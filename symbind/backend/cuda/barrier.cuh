// Barriers in shared memory that wait for bytes which arrive asynchronously, from compute capability 9.0 on, where
// there are thread block clusters (cluster.cuh) and tensor copies (tensor_copy.cuh), too. Code for older GPUs has none
// of this and must not be run: see is_built_for_9_0() of launch.cuh.
#pragma once

#include <cstdint>

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
#define SYMBIND_BUILT_FOR_9_0 0
#else
#define SYMBIND_BUILT_FOR_9_0 1
#endif

#if SYMBIND_BUILT_FOR_9_0 && defined(__CUDACC__)
namespace symbind::cuda_backend::barrier {

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

}  // namespace symbind::cuda_backend::barrier
#endif
