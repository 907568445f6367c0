// Which samples the batches of an epoch hold, for iterators that fill the last batch up.
#pragma once

#include <cstdint>
#include <vector>

namespace symbind {

// With `round`, the last batch of an epoch is filled with samples from the beginning, and the next epoch continues
// after them, as in MXNet. Without it every epoch starts at the first sample, and the samples that fill the last batch
// are repeated.
class RoundBatches {
 public:
  RoundBatches(int64_t count, int64_t batch_size, bool round) : count_(count), batch_size_(batch_size), round_(round) {}

  // The positions of the next batch in 0 … count - 1; false when the epoch is over.
  bool next(std::vector<int64_t>& positions) {
    positions.clear();
    if (next_ >= count_) return false;
    for (int64_t i = 0; i < batch_size_; ++i) positions.push_back((next_ + i) % count_);
    next_ += batch_size_;
    return true;
  }
  // Of the batch that next() returned: how many of its samples only fill it up.
  int64_t pad() const { return next_ > count_ ? next_ - count_ : 0; }
  void reset() { next_ = round_ && next_ > count_ ? next_ % count_ : 0; }

 private:
  int64_t count_, batch_size_;
  bool round_;
  int64_t next_ = 0;
};

}  // namespace symbind
