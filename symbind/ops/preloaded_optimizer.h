// Steps of stochastic gradient descent for many arrays in one operator, with learning rates and weight decays in
// arrays: a schedule can change them without a new operator. Inputs are those of ops/multi_optimizer.h, then lrs and
// wds, with a number per weight.
#pragma once

#include "symbind/graph/builder.h"

namespace SYMBIND_API symbind {

struct PreloadedMultiSgdUpdate {
  double rescale_grad = 1;
  double clip_gradient = -1;  // below 0: no clipping
  int64_t num_weights = 1;
};
struct PreloadedMultiSgdMomUpdate {
  double momentum = 0;
  double rescale_grad = 1;
  double clip_gradient = -1;
  int64_t num_weights = 1;
};
struct PreloadedMultiMpSgdUpdate : PreloadedMultiSgdUpdate {};
struct PreloadedMultiMpSgdMomUpdate : PreloadedMultiSgdMomUpdate {};
inline constexpr Builder<PreloadedMultiSgdUpdate> preloaded_multi_sgd_update;
inline constexpr Builder<PreloadedMultiSgdMomUpdate> preloaded_multi_sgd_mom_update;
inline constexpr Builder<PreloadedMultiMpSgdUpdate> preloaded_multi_mp_sgd_update;
inline constexpr Builder<PreloadedMultiMpSgdMomUpdate> preloaded_multi_mp_sgd_mom_update;

}  // namespace symbind
