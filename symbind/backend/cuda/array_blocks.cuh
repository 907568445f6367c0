// Launches over many arrays: every array has consecutive blocks of the launch, and a block finds the array that it
// works on.
#pragma once

#include <cstdint>

namespace symbind::cuda_backend {

// A part of a launch's arguments; `most` is the number of arrays that it has room for.
template <int most>
class ArrayBlocks {
 public:
  bool has_room(int64_t blocks) const { return count_ < most && this->blocks() + blocks <= most_blocks_of_launch; }
  void add(int64_t blocks) {
    end_[count_] = this->blocks() + static_cast<uint32_t>(blocks);
    ++count_;
  }
  int count() const { return count_; }
  uint32_t blocks() const { return count_ == 0 ? 0 : end_[count_ - 1]; }

  // The array of a block, its index among the blocks of that array, and their number.
  struct ArrayBlock {
    int array;
    uint32_t block, blocks;
  };
  __device__ ArrayBlock find(uint32_t block) const {
    int low = 0, high = count_ - 1;
    while (low < high) {
      const int middle = (low + high) / 2;
      if (end_[middle] > block)
        high = middle;
      else
        low = middle + 1;
    }
    const uint32_t first = low > 0 ? end_[low - 1] : 0;
    return {low, block - first, end_[low] - first};
  }

 private:
  static constexpr int64_t most_blocks_of_launch = (int64_t{1} << 31) - 1;
  uint32_t end_[most] = {};  // the first block after those of each array
  int count_ = 0;
};

}  // namespace symbind::cuda_backend
