// The schedules that tests/oracle/record_optimizers.py asked MXNet about, by the names it gives them.
#pragma once

#include <string>

#include "symbind/optim/lr_scheduler.h"

namespace symbind::testing {

inline WarmUp recorded_warm_up(const std::string& name) {
  if (name == "warm_linear") return {.steps = 5, .begin_lr = 0.1, .mode = "linear"};
  if (name == "warm_linear_from_0") return {.steps = 4};
  if (name == "warm_constant") return {.steps = 5, .begin_lr = 0.05, .mode = "constant"};
  return {};
}

inline LRSchedulerPtr recorded_schedule(const std::string& name, const std::string& warm_up_name) {
  const WarmUp warm_up = recorded_warm_up(warm_up_name);
  if (name == "factor") return factor_scheduler({.step = 3, .factor = 0.5, .base_lr = 0.4, .warm_up = warm_up});
  if (name == "factor_stops")
    return factor_scheduler({.step = 2, .factor = 0.25, .stop_factor_lr = 0.01, .base_lr = 0.4, .warm_up = warm_up});
  if (name == "factor_every") return factor_scheduler({.step = 1, .factor = 0.9, .base_lr = 0.4, .warm_up = warm_up});
  if (name == "multi_factor")
    return multi_factor_scheduler({.step = {4, 9, 17}, .factor = 0.1, .base_lr = 0.4, .warm_up = warm_up});
  if (name == "poly")
    return poly_scheduler({.max_update = 20, .base_lr = 0.4, .pwr = 2, .final_lr = 0.01, .warm_up = warm_up});
  if (name == "poly_line")
    return poly_scheduler({.max_update = 20, .base_lr = 0.4, .pwr = 1, .final_lr = 0, .warm_up = warm_up});
  if (name == "cosine")
    return cosine_scheduler({.max_update = 20, .base_lr = 0.4, .final_lr = 0.01, .warm_up = warm_up});
  return nullptr;
}

}  // namespace symbind::testing
