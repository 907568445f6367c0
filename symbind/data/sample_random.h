// The random numbers of one sample: a function of a key, the epoch and the sample's position in it.
#pragma once

#include <cmath>

#include "symbind/core/random.h"

namespace symbind {

class SampleRandom {
 public:
  SampleRandom(uint64_t key, uint64_t epoch, uint64_t position) : key_(key), draw_(epoch), position_(position << 16) {}

  float unit() { return unit_float(word()); }  // in [0, 1)
  float uniform(float low, float high) { return low + (high - low) * unit(); }
  // In low … high, both included.
  int64_t whole(int64_t low, int64_t high) {
    if (high <= low) return low;
    const double span = static_cast<double>(high - low + 1);
    return low + static_cast<int64_t>(unit_double(word(), word()) * span);
  }
  bool coin() { return (word() & 1U) != 0; }
  float normal(float deviation) {
    const float radius = std::sqrt(-2 * std::log(1 - unit()));
    return deviation * radius * std::cos(6.28318530718F * unit());
  }

 private:
  uint32_t word() {
    if (used_ == 4) {
      block_ = philox(key_, draw_, position_++);
      used_ = 0;
    }
    return block_.words[used_++];
  }

  uint64_t key_, draw_, position_;
  PhiloxBlock block_{};
  int used_ = 4;
};

}  // namespace symbind
