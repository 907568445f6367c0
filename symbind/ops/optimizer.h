// Steps of stochastic gradient descent as operators. Their output is the new weight, usually bound to the old one's
// array.
#pragma once

#include "symbind/graph/builder.h"

namespace symbind {

struct SgdUpdate {
  double lr = required;
  double wd = 0;
  double rescale_grad = 1;
  double clip_gradient = -1;  // below 0: no clipping
  bool lazy_update = true;
};
inline constexpr Builder<SgdUpdate> sgd_update;

struct SgdMomUpdate {
  double lr = required;
  double momentum = 0;
  double wd = 0;
  double rescale_grad = 1;
  double clip_gradient = -1;
  bool lazy_update = true;
};
inline constexpr Builder<SgdMomUpdate> sgd_mom_update;

void register_optimizer(OpRegistry& registry);

}  // namespace symbind
