#include "symbind/backend/cuda/memory_pool.h"

#include "symbind/backend/cuda/check.h"
#include "symbind/backend/pooled_size.h"

namespace symbind::cuda_backend {

void* Pool::allocate_block(size_t bytes) const {
  void* data = nullptr;
  const cudaError_t status =
      kind_ == Kind::device ? cudaMalloc(&data, bytes) : cudaHostAlloc(&data, bytes, cudaHostAllocPortable);
  if (status == cudaErrorMemoryAllocation) {
    cudaGetLastError();  // clears this error, so that the next caller does not see it
    return nullptr;
  }
  check(status, kind_ == Kind::device ? "allocating device memory" : "allocating pinned host memory");
  return data;
}

void Pool::free_block(void* data) const noexcept {
  // At the end of the process the driver may be unloaded already: failures are ignored.
  if (kind_ == Kind::device)
    cudaFree(data);
  else
    cudaFreeHost(data);
}

void* Pool::allocate(size_t bytes) {
  const size_t size = pooled_size(bytes);
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = blocks_.find(size); found != blocks_.end() && !found->second.empty()) {
      void* data = found->second.back();
      found->second.pop_back();
      pooled_bytes_ -= static_cast<int64_t>(size);
      return data;
    }
  }
  const CurrentDevice current(device_id_);
  if (void* data = allocate_block(size)) return data;
  empty();
  return allocate_block(size);
}

void Pool::release(void* data, size_t bytes) noexcept {
  if (!data) return;
  const size_t size = pooled_size(bytes);
  const std::lock_guard lock(mutex_);
  blocks_[size].push_back(data);
  pooled_bytes_ += static_cast<int64_t>(size);
}

void Pool::empty() noexcept {
  std::unordered_map<size_t, std::vector<void*>> blocks;
  {
    const std::lock_guard lock(mutex_);
    blocks.swap(blocks_);
    pooled_bytes_ = 0;
  }
  int before = 0;
  if (cudaGetDevice(&before) != cudaSuccess || cudaSetDevice(device_id_) != cudaSuccess) return;
  for (const auto& [size, list] : blocks)
    for (void* data : list) free_block(data);
  cudaSetDevice(before);
}

int64_t Pool::pooled_bytes() const {
  const std::lock_guard lock(mutex_);
  return pooled_bytes_;
}

}  // namespace symbind::cuda_backend
