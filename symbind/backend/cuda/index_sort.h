// Terms sorted by the index of the element that they are added to, for sums without atomic additions: the terms of an
// element are then adjacent, in their original order.
#pragma once

#include <cstddef>
#include <cstdint>

#include <cuda_runtime_api.h>

namespace symbind::cuda_backend {

class IndexSort {
 public:
  static constexpr int64_t most = int64_t{1} << 31;  // terms and elements are fewer than this

  // For `terms` indices below `elements`. Queries the scratch size from CUDA: the device must be current.
  IndexSort(int64_t terms, int64_t elements);

  size_t bytes() const { return 4 * of_numbers_ + of_sort_; }
  int64_t terms() const { return terms_; }

  // Write the index of each term and the number of the term here before the sort.
  uint32_t* indices(void* scratch) const { return numbers(scratch, 0); }
  uint32_t* order(void* scratch) const { return numbers(scratch, 1); }

  struct Sorted {
    const uint32_t *indices, *order;
  };
  Sorted queue(cudaStream_t stream, void* scratch) const;

 private:
  uint32_t* numbers(void* scratch, size_t which) const {
    return reinterpret_cast<uint32_t*>(static_cast<std::byte*>(scratch) + which * of_numbers_);
  }

  int64_t terms_;
  size_t of_numbers_, of_sort_ = 0;  // bytes of one array of numbers, and of the sort's own scratch
  int bits_ = 1;                     // of an index
};

}  // namespace symbind::cuda_backend
