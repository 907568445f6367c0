// Pooling: the maximum, mean, sum or p-norm of a window that moves over the spatial axes.
#pragma once

#include <array>

#include "symbind/graph/builder.h"
#include "symbind/ops/choices.h"

namespace SYMBIND_API symbind {

// stride and pad are as long as kernel once the struct is checked (with global_pool and no kernel they may be empty).
struct Pooling {
  Tuple kernel = {};
  std::string pool_type = "max";
  bool global_pool = false;
  bool cudnn_off = false;
  std::string pooling_convention = "valid";
  Tuple stride = {};
  Tuple pad = {};
  std::optional<int64_t> p_value = {};
  std::optional<bool> count_include_pad = {};
  std::optional<std::string> layout = {};
};
inline constexpr Builder<Pooling> pooling;

// (out_grad, data, output) → data_grad; for avg and sum (out_grad, data for its shape).
struct PoolingGrad : Pooling {};
inline constexpr Builder<PoolingGrad> pooling_grad;

// The sizes of a pooling of known shapes, always with three spatial axes (missing ones are first and have extent 1).
// A window starts at output × stride - pad and may reach beyond the input at either end.
struct PoolingSize {
  int64_t batch, channels;
  std::array<int64_t, 3> in, out, kernel, stride, pad;
  bool channels_last;
  bool count_padding;  // does a mean divide by the whole window, padding (but nothing beyond it) included?
  int rank;            // how many of the axes are real

  int64_t in_size() const { return in[0] * in[1] * in[2]; }
  int64_t out_size() const { return out[0] * out[1] * out[2]; }
};
PoolingSize size_of(const Pooling& params, const Shape& data, const Shape& output);

}  // namespace symbind
