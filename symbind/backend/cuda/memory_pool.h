// A memory pool: released blocks are stored by size (pooled_size.h) and reused.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <vector>

#include <cuda_runtime_api.h>

namespace symbind::cuda_backend {

class Pool {
 public:
  enum class Kind { device, pinned_host };
  Pool(Kind kind, int device_id) : kind_(kind), device_id_(device_id) {}
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  // If CUDA is out of memory, all pooled blocks are freed and the allocation is retried; null if that fails.
  void* allocate(size_t bytes);
  void release(void* data, size_t bytes) noexcept;
  void empty() noexcept;
  int64_t pooled_bytes() const;

 private:
  void* allocate_block(size_t bytes) const;
  void free_block(void* data) const noexcept;

  Kind kind_;
  int device_id_;
  mutable std::mutex mutex_;
  std::unordered_map<size_t, std::vector<void*>> blocks_;  // by pooled size
  int64_t pooled_bytes_ = 0;
};

// A block of a pool for the duration of a scope.
class PoolBlock {
 public:
  PoolBlock(Pool& pool, size_t bytes) : pool_(&pool), data_(pool.allocate(bytes)), bytes_(bytes) {}
  ~PoolBlock() {
    if (data_) pool_->release(data_, bytes_);
  }
  PoolBlock(const PoolBlock&) = delete;
  PoolBlock& operator=(const PoolBlock&) = delete;
  std::byte* data() const { return static_cast<std::byte*>(data_); }

 private:
  Pool* pool_;
  void* data_;
  size_t bytes_;
};

}  // namespace symbind::cuda_backend
