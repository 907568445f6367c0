// A step of ops/loss_scale.h in memory, shared by all backends.
#pragma once

#include "symbind/ops/loss_scale.h"

namespace symbind {

constexpr void adapt_in_memory(const float* finite, double* state, float* scale, float* inverse) {
  LossScale adapted(state[0], static_cast<int64_t>(state[1]));
  adapted.finish_step(*finite != 0);
  state[0] = adapted.value();
  state[1] = static_cast<double>(adapted.good_steps());
  *scale = static_cast<float>(adapted.value());
  *inverse = static_cast<float>(1 / adapted.value());
}

}  // namespace symbind
