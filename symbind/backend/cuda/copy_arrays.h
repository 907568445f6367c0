// Copies of several arrays on a device.
#pragma once

#include <cstddef>
#include <span>

#include <cuda_runtime_api.h>

namespace symbind::cuda_backend {

// Must not overlap.
struct CopiedBytes {
  void* to;
  const void* from;
  size_t bytes;
};

// In one launch, whatever their sizes (in several, if they are very many).
void queue_copies(cudaStream_t stream, std::span<const CopiedBytes> arrays);

}  // namespace symbind::cuda_backend
