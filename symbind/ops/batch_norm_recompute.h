// What BatchNorm computed in forward, recomputed in backward: from the statistics it left, so that nothing is summed up
// and no moving average touched a second time.
#pragma once

#include "symbind/ops/batch_norm.h"

namespace symbind {

// (data, gamma, beta, mean, var) → output, where `var` is the reciprocal deviation, as BatchNorm gives it.
struct BatchNormRecompute {
  bool fix_gamma = true;
  int64_t axis = 1;
  bool relu = false;  // and what is below zero becomes zero
};
inline constexpr Builder<BatchNormRecompute> batch_norm_recompute;

}  // namespace symbind
