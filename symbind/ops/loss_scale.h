// The scale of a loss whose gradients are of 16 bits, and its adaptation on the device that has the gradients.
#pragma once

#include <cstdint>

#include "symbind/graph/builder.h"

namespace SYMBIND_API symbind {

// How large the scale is: halved when a gradient overflows, doubled after a number of steps without an overflow.
class LossScale {
 public:
  static constexpr double first = 65536, least = 1, most = 16777216;
  static constexpr int64_t steps_before_growth = 2000;

  constexpr LossScale() = default;
  constexpr LossScale(double value, int64_t good_steps) : value_(value), good_steps_(good_steps) {}

  constexpr double value() const { return value_; }
  constexpr int64_t good_steps() const { return good_steps_; }  // since it was last changed or a step overflowed
  // After each step: were all gradients finite? If not, the step must not be taken.
  constexpr void finish_step(bool finite) {
    if (!finite) {
      value_ = value_ / 2 > least ? value_ / 2 : least;
      good_steps_ = 0;
    } else if (++good_steps_ == steps_before_growth) {
      value_ = value_ * 2 < most ? value_ * 2 : most;
      good_steps_ = 0;
    }
  }

 private:
  double value_ = first;
  int64_t good_steps_ = 0;
};

// LossScale::finish_step(finite != 0): (finite, state) → scale, 1 / scale. The state, which it updates, is the value
// and the count of good steps in float64. Internal.
struct AdaptLossScale {};
inline constexpr Builder<AdaptLossScale> adapt_loss_scale;

}  // namespace symbind
