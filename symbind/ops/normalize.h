// Normalization without statistics of a batch: by length, over neighbouring channels, over an instance, over a layer,
// over a group of channels.
#pragma once

#include "symbind/graph/builder.h"
#include "symbind/ops/choices.h"

namespace SYMBIND_API symbind {

struct L2Normalization {
  double eps = 1e-10;
  std::string mode = "instance";  // instance, channel or spatial
};
inline constexpr Builder<L2Normalization> l2_normalization;
struct LRN {
  double alpha = 1e-4;
  double beta = 0.75;
  double knorm = 2;
  Required<int64_t> nsize = {};
};
inline constexpr Builder<LRN> lrn;
// (out_grad, data) → data_grad
struct L2NormalizationGrad : L2Normalization {};
inline constexpr Builder<L2NormalizationGrad> l2_normalization_grad;
struct LRNGrad : LRN {};
inline constexpr Builder<LRNGrad> lrn_grad;

struct InstanceNorm {
  double eps = 1e-3;
};
inline constexpr Builder<InstanceNorm> instance_norm;
struct LayerNorm {
  int64_t axis = -1;
  double eps = 1e-5;
  bool output_mean_var = false;
};
inline constexpr Builder<LayerNorm> layer_norm;
struct GroupNorm {
  int64_t num_groups = 1;
  double eps = 1e-5;
  bool output_mean_var = false;
};
inline constexpr Builder<GroupNorm> group_norm;
// (out_grad, data, gamma) → data_grad, gamma_grad, beta_grad
struct InstanceNormGrad : InstanceNorm {};
inline constexpr Builder<InstanceNormGrad> instance_norm_grad;
struct LayerNormGrad : LayerNorm {};
inline constexpr Builder<LayerNormGrad> layer_norm_grad;
struct GroupNormGrad : GroupNorm {};
inline constexpr Builder<GroupNormGrad> group_norm_grad;

}  // namespace symbind
