// AdamW with the gradient scale in an array, and AdamW and LAMB for many arrays in one operator. Inputs are grouped by
// weight: weight, grad, mean, var and, in mixed precision, the float32 copy of the weight; output i is the new weight
// i. States are updated in place.
#pragma once

#include <vector>

#include "symbind/graph/builder.h"

namespace SYMBIND_API symbind {

// The last input is rescale_grad, of one element: if it is 0 or not finite, nothing is updated.
struct AdamWUpdate {
  Required<double> lr = {};
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double wd = 0;
  Required<double> eta = {};
  double clip_gradient = -1;  // below 0: no clipping
};
struct MpAdamWUpdate : AdamWUpdate {};
inline constexpr Builder<AdamWUpdate> adamw_update;
inline constexpr Builder<MpAdamWUpdate> mp_adamw_update;

struct MultiAdamWUpdate {
  Required<std::vector<double>> lrs = {};
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  Required<std::vector<double>> wds = {};
  Required<std::vector<double>> etas = {};
  double clip_gradient = -1;
  int64_t num_weights = 1;
};
struct MultiMpAdamWUpdate : MultiAdamWUpdate {};
inline constexpr Builder<MultiAdamWUpdate> multi_adamw_update;
inline constexpr Builder<MultiMpAdamWUpdate> multi_mp_adamw_update;

struct MultiLambUpdate {
  Required<std::vector<double>> learning_rates = {};
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-6;
  Required<std::vector<double>> wds = {};
  double rescale_grad = 1;
  double lower_bound = -1;  // of the norm of a weight; below 0: none
  double upper_bound = -1;
  double clip_gradient = -1;
  bool bias_correction = true;
  Required<Tuple> step_count = {};  // of each weight, from 1
  int64_t num_tensors = 1;
};
struct MultiMpLambUpdate : MultiLambUpdate {};
inline constexpr Builder<MultiLambUpdate> multi_lamb_update;
inline constexpr Builder<MultiMpLambUpdate> multi_mp_lamb_update;

}  // namespace symbind
