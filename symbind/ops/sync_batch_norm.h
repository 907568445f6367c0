// Batch normalization under other names: with the parameters of MXNet's synchronized one, and followed by a ReLU.
#pragma once

#include "symbind/ops/batch_norm.h"
#include "symbind/ops/composition.h"

namespace SYMBIND_API symbind {

// The channels are axis 1. Each context normalizes with the statistics of its own part of the batch: key and ndev,
// which control the exchange in MXNet, have no effect.
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

// max(0, BatchNorm)
struct BatchNormWithReLU : BatchNorm {};
inline constexpr Builder<BatchNormWithReLU> batch_norm_with_relu;

Symbol network_of(const SyncBatchNorm& params, const ComposedInputs& in);
Symbol network_of(const BatchNormWithReLU& params, const ComposedInputs& in);

}  // namespace symbind
