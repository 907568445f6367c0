// Transposed convolution: the gradient of a convolution as a layer.
#pragma once

#include "symbind/graph/builder.h"
#include "symbind/ops/choices.h"
#include "symbind/ops/conv.h"

namespace SYMBIND_API symbind {

// stride, dilate, pad and adj are as long as kernel once the struct is checked.
struct Deconvolution {
  Required<Tuple> kernel = {};
  Tuple stride = {};
  Tuple dilate = {};
  Tuple pad = {};
  Tuple adj = {};
  Tuple target_shape = {};  // the extents of the result; pad and adj follow from them
  Required<int64_t> num_filter = {};
  int64_t num_group = 1;
  int64_t workspace = 512;
  bool no_bias = true;
  std::optional<std::string> cudnn_tune = {};
  bool cudnn_off = false;
  std::optional<std::string> layout = {};
};
inline constexpr Builder<Deconvolution> deconvolution;

// (out_grad, weight, data for its shape) → data_grad
struct DeconvolutionGradData : Deconvolution {};
inline constexpr Builder<DeconvolutionGradData> deconvolution_grad_data;

// (out_grad, data, weight for its shape) → weight_grad
struct DeconvolutionGradWeight : Deconvolution {};
inline constexpr Builder<DeconvolutionGradWeight> deconvolution_grad_weight;

// The convolution that leads from the result's shape back to that of data, without a bias.
Convolution reversed(const Deconvolution& params, const Shape& data);

}  // namespace symbind
