// Thread block clusters, from compute capability 9.0 on: blocks that run concurrently and write to each other's shared
// memory. Code for older GPUs has none of this and must not be run: see is_built_for_9_0() of launch.cuh,
// where such a launch is too.
#pragma once

#include <cstdint>

#include <cuda_runtime.h>

#include "symbind/backend/cuda/barrier.cuh"

namespace symbind::cuda_backend {

inline constexpr int most_cluster_blocks = 8;  // on every GPU that has clusters

#if SYMBIND_BUILT_FOR_9_0 && defined(__CUDACC__)
namespace cluster {

// Of this block.
__device__ inline int rank() {
  uint32_t rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return static_cast<int>(rank);
}
// All threads of all blocks arrive, and then wait for each other. What a thread wrote before it arrived is visible to
// those that have waited.
__device__ inline void arrive() { asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory"); }
__device__ inline void wait() { asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory"); }

// Where an address in this block's shared memory is in that of another block.
__device__ inline uint32_t address_in(uint32_t shared_address, int rank) {
  uint32_t address;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(address) : "r"(shared_address), "r"(rank));
  return address;
}

// Stores a number in the shared memory of a block of the cluster, at an address_in() that block.
__device__ inline void store(uint32_t to, double value) {
  asm volatile("st.shared::cluster.f64 [%0], %1;" ::"r"(to), "d"(value) : "memory");
}

// A barrier in shared memory (8 bytes) that opens once, when `bytes` have been stored to this block by send(). One
// thread sets it up, before it arrives at the cluster's barrier.
__device__ inline void expect(uint32_t barrier, int bytes) {
  barrier::set_up(barrier);
  barrier::expect_bytes(barrier, static_cast<uint32_t>(bytes));
}
__device__ inline void wait_for_expected(uint32_t barrier) {
  uint32_t is_open = 0;
  while (!is_open)
    asm volatile(
        "{\n\t"
        ".reg .pred open;\n\t"
        "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 open, [%1], 0;\n\t"
        "selp.u32 %0, 1, 0, open;\n\t"
        "}"
        : "=r"(is_open)
        : "r"(barrier)
        : "memory");
}
// Stores 16 bytes in the shared memory of a block of the cluster and notifies its barrier; both addresses are
// address_in() that block.
__device__ inline void send(uint32_t to, float4 value, uint32_t barrier) {
  asm volatile(
      "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [%0], {%1, %2, %3, %4}, [%5];" ::"r"(to),
      "f"(value.x), "f"(value.y), "f"(value.z), "f"(value.w), "r"(barrier)
      : "memory");
}

}  // namespace cluster
#endif

}  // namespace symbind::cuda_backend
