// Kernels that use more than 48 KB of dynamic shared memory per block.
#pragma once

#include <cuda_runtime.h>

#include "symbind/backend/cuda/check.h"
#include "symbind/backend/cuda/device.h"

namespace symbind::cuda_backend {

// Allows launches of a kernel, which has no static shared memory, to use as much as a block may: not only what one
// launch needs, since others of the same kernel may need more. `carveout` is one of cudaSharedCarveout: how much of the
// memory that is also the L1 cache should be shared memory.
template <class Kernel>
void allow_shared_memory(const CudaDevice& device, Kernel* kernel, int carveout = cudaSharedmemCarveoutDefault) {
  const CurrentDevice current(device.id());
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             device.attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin)),
        "reserving shared memory");
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout, carveout),
        "reserving shared memory");
}

}  // namespace symbind::cuda_backend
