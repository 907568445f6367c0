// Dynamic shared memory: how much of it a GPU has, and kernels that use more than 48 KB of it per block.
#pragma once

#include <cuda_runtime.h>

#include "symbind/backend/cuda/check.h"
#include "symbind/backend/cuda/device.h"

namespace symbind::cuda_backend {

// That of a GPU, in bytes.
struct SharedMemory {
  int of_block;           // what a block may use at most
  int of_multiprocessor;  // what its blocks share
  int reserved;           // what the system takes of it for each block

  explicit SharedMemory(const CudaDevice& device)
      : of_block(device.attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin)),
        of_multiprocessor(device.attribute(cudaDevAttrMaxSharedMemoryPerMultiprocessor)),
        reserved(device.attribute(cudaDevAttrReservedSharedMemoryPerBlock)) {}

  // How many blocks that use `bytes` each a multiprocessor has room for.
  int blocks(int bytes) const { return of_multiprocessor / (bytes + reserved); }
};

// Allows launches of a kernel, which has no static shared memory, to use as much as a block may: not only what one
// launch needs, since others of the same kernel may need more. `carveout` is one of cudaSharedCarveout: how much of the
// memory that is also the L1 cache should be shared memory.
template <class Kernel>
void allow_shared_memory(const CudaDevice& device, Kernel* kernel, int carveout = cudaSharedmemCarveoutDefault) {
  const CurrentDevice current(device.id());
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, SharedMemory(device).of_block),
        "reserving shared memory");
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout, carveout),
        "reserving shared memory");
}

}  // namespace symbind::cuda_backend
