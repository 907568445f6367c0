// Recomputes the output of BatchNorm in backward from the statistics that forward stored, without reductions and
// without updating the moving averages again.
#pragma once

#include "symbind/ops/batch_norm.h"

namespace symbind {

// (data, gamma, beta, mean, var) → output, where `var` is the reciprocal standard deviation, as BatchNorm returns it.
struct BatchNormRecompute {
  bool fix_gamma = true;
  int64_t axis = 1;
  bool relu = false;  // apply ReLU to the output
};
inline constexpr Builder<BatchNormRecompute> batch_norm_recompute;

}  // namespace symbind
