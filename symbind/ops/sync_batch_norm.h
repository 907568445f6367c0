// Batch normalization under other names: with the parameters of MXNet's synchronized one, and followed by a ReLU.
#pragma once

#include "symbind/ops/batch_norm.h"
#include "symbind/ops/composition.h"

namespace SYMBIND_API symbind {

// The channels are axis 1. In training the statistics are those of the whole batch over the contexts that run the
// network concurrently and over the workers of a distributed job (core/sum_group.h), which are known without ndev. The
// output var is the variance.
struct SyncBatchNorm {
  double eps = 0.001;
  double momentum = 0.9;
  bool fix_gamma = true;
  bool use_global_stats = false;
  bool output_mean_var = false;
  int64_t ndev = 1;
  Required<std::string> key = {};
};
inline constexpr Builder<SyncBatchNorm> sync_batch_norm;
// (out_grad, data, gamma, mean, var) → data_grad, gamma_grad, beta_grad
struct SyncBatchNormGrad : SyncBatchNorm {};
inline constexpr Builder<SyncBatchNormGrad> sync_batch_norm_grad;

BatchNorm as_batch_norm(const SyncBatchNorm& params);

// max(0, BatchNorm)
struct BatchNormWithReLU : BatchNorm {};
inline constexpr Builder<BatchNormWithReLU> batch_norm_with_relu;

// On one context that has the whole batch.
Symbol network_of(const SyncBatchNorm& params, const ComposedInputs& in);
Symbol network_of(const SyncBatchNormGrad& params, const ComposedInputs& in);
Symbol network_of(const BatchNormWithReLU& params, const ComposedInputs& in);

}  // namespace symbind
