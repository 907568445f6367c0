// The parameters of single weights among those of an operator that updates many, in the form of the rules of
// update_rules.h.
#pragma once

#include "symbind/backend/update_rules.h"
#include "symbind/ops/multi_adaptive_optimizer.h"

namespace symbind::update_rules {

// The gradient's scale is in an array: rules are created with 1, and kernels set the value from the array.
inline AdamWStep step_of(const AdamWUpdate& p, size_t /*index*/) {
  return {.lr = p.lr,
          .beta1 = p.beta1,
          .beta2 = p.beta2,
          .epsilon = p.epsilon,
          .wd = p.wd,
          .eta = p.eta,
          .clip_gradient = p.clip_gradient};
}
inline AdamWStep step_of(const MultiAdamWUpdate& p, size_t index) {
  return {.lr = p.lrs[index],
          .beta1 = p.beta1,
          .beta2 = p.beta2,
          .epsilon = p.epsilon,
          .wd = p.wds[index],
          .eta = p.etas[index],
          .clip_gradient = p.clip_gradient};
}

// Can gradients be scaled by this number? A scale of 0 marks an overflow in half precision.
constexpr bool is_usable(float rescale) { return rescale != 0 && rescale - rescale == 0; }

inline LambUpdatePhase1 direction_of(const MultiLambUpdate& p, size_t index) {
  return {.beta1 = p.beta1,
          .beta2 = p.beta2,
          .epsilon = p.epsilon,
          .t = p.step_count[index],
          .bias_correction = p.bias_correction,
          .wd = p.wds[index],
          .rescale_grad = p.rescale_grad,
          .clip_gradient = p.clip_gradient};
}
inline LambUpdatePhase2 length_of(const MultiLambUpdate& p, size_t index) {
  return {.lr = p.learning_rates[index], .lower_bound = p.lower_bound, .upper_bound = p.upper_bound};
}

}  // namespace symbind::update_rules
