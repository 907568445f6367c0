// The rows of a matrix of keys sorted in ascending order, with an index beside each key. Equal keys keep their order.
#pragma once

#include <cstddef>
#include <cstdint>

#include <cuda_runtime_api.h>

namespace symbind::cuda_backend {

// Keys are uint32_t or uint64_t. There are fewer than 2^31 of them, and at least one.
class RowSort {
 public:
  // Queries the scratch size from the current device.
  RowSort(int64_t rows, int64_t length, size_t key_bytes);

  size_t scratch_bytes() const { return scratch_bytes_; }
  // To be filled before the sort, in row-major order.
  template <class Key>
  Key* keys(void* scratch) const {
    return static_cast<Key*>(scratch);
  }
  int32_t* indices(void* scratch) const { return at(scratch, indices_); }
  void run(cudaStream_t stream, void* scratch) const;
  const int32_t* sorted_indices(void* scratch) const { return at(scratch, sorted_indices_); }

 private:
  static int32_t* at(void* scratch, size_t begin) {
    return reinterpret_cast<int32_t*>(static_cast<std::byte*>(scratch) + begin);
  }
  template <class Key>
  size_t work_bytes() const;
  template <class Key>
  void sort(cudaStream_t stream, void* scratch) const;

  int64_t rows_, length_;
  size_t key_bytes_;
  size_t indices_ = 0, sorted_keys_ = 0, sorted_indices_ = 0, row_begins_ = 0, work_ = 0, work_bytes_ = 0;
  size_t scratch_bytes_ = 0;
};

}  // namespace symbind::cuda_backend
