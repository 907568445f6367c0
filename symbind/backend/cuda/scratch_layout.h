// Arrays one after the other in the scratch memory of a step.
#pragma once

#include <cstddef>
#include <cstdint>

namespace symbind::cuda_backend {

class ScratchLayout {
 public:
  // The byte offset of a new array of `count` elements.
  template <class T>
  size_t add(int64_t count) {
    return add_bytes(static_cast<size_t>(count) * sizeof(T));
  }
  size_t add_bytes(size_t bytes) {
    constexpr size_t alignment = 256;
    const size_t begin = total_;
    total_ += (bytes + alignment - 1) / alignment * alignment;
    return begin;
  }
  size_t total() const { return total_; }

 private:
  size_t total_ = 0;
};

template <class T>
T* scratch_at(void* scratch, size_t begin) {
  return reinterpret_cast<T*>(static_cast<std::byte*>(scratch) + begin);
}

}  // namespace symbind::cuda_backend
