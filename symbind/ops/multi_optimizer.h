// Updates of many arrays in one operator. Inputs are grouped by weight: weight, grad and states of the first, then of
// the second, …; output i is the new weight i.
#pragma once

#include <vector>

#include "symbind/graph/builder.h"

namespace SYMBIND_API symbind {

struct MultiSgdUpdate {
  std::vector<double> lrs = {};
  std::vector<double> wds = {};
  double rescale_grad = 1;
  double clip_gradient = -1;  // below 0: no clipping
  int64_t num_weights = 1;
};
struct MultiSgdMomUpdate {
  std::vector<double> lrs = {};
  std::vector<double> wds = {};
  double momentum = 0;
  double rescale_grad = 1;
  double clip_gradient = -1;
  int64_t num_weights = 1;
};
struct MultiMpSgdUpdate : MultiSgdUpdate {};
struct MultiMpSgdMomUpdate : MultiSgdMomUpdate {};
inline constexpr Builder<MultiSgdUpdate> multi_sgd_update;
inline constexpr Builder<MultiSgdMomUpdate> multi_sgd_mom_update;
inline constexpr Builder<MultiMpSgdUpdate> multi_mp_sgd_update;
inline constexpr Builder<MultiMpSgdMomUpdate> multi_mp_sgd_mom_update;

// The sum of the squares of each array.
struct MultiSumSq {
  Required<int64_t> num_arrays = {};
};
inline constexpr Builder<MultiSumSq> multi_sum_sq;

// Learning rates scaled by the ratio of the norms of weights and gradients.
struct MultiLars {
  Required<double> eta = {};
  Required<double> eps = {};
  double rescale_grad = 1;
};
inline constexpr Builder<MultiLars> multi_lars;

}  // namespace symbind
