// Terms brought into the order of the places that they are added to, for sums without atomic additions: the terms of a
// place are neighbours then, in the order in which they came.
#pragma once

#include <cstddef>
#include <cstdint>

#include <cuda_runtime_api.h>

namespace symbind::cuda_backend {

class PlaceSort {
 public:
  static constexpr int64_t most = int64_t{1} << 31;  // terms and places are fewer than this

  // For `terms` places below `places`. Asks CUDA for the size of its memory: the device must be the current one.
  PlaceSort(int64_t terms, int64_t places);

  size_t bytes() const { return 4 * of_numbers_ + of_sort_; }
  int64_t terms() const { return terms_; }

  // Where the place of each term and the number of the term are to be written before the sort.
  uint32_t* places(void* scratch) const { return numbers(scratch, 0); }
  uint32_t* order(void* scratch) const { return numbers(scratch, 1); }

  struct Sorted {
    const uint32_t *places, *order;
  };
  Sorted queue(cudaStream_t stream, void* scratch) const;

 private:
  uint32_t* numbers(void* scratch, size_t which) const {
    return reinterpret_cast<uint32_t*>(static_cast<std::byte*>(scratch) + which * of_numbers_);
  }

  int64_t terms_;
  size_t of_numbers_, of_sort_ = 0;  // bytes of one array of numbers, and of what the sort itself needs
  int bits_ = 1;                     // of a place
};

}  // namespace symbind::cuda_backend
