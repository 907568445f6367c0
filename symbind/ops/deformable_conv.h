// Convolutions whose sampling positions are shifted by offsets that the network computes for each output position.
#pragma once

#include "symbind/graph/builder.h"

namespace SYMBIND_API symbind {

// stride, dilate and pad have two numbers once the struct is checked.
struct DeformableConvolution {
  Required<Tuple> kernel = {};
  Tuple stride = {};
  Tuple dilate = {};
  Tuple pad = {};
  Required<int64_t> num_filter = {};
  int64_t num_group = 1;
  int64_t num_deformable_group = 1;  // groups of channels with offsets of their own
  int64_t workspace = 1024;
  bool no_bias = false;
  std::optional<std::string> layout = {};
};
inline constexpr Builder<DeformableConvolution> deformable_convolution;

// Every sampled element is also multiplied by its own factor, the mask.
struct ModulatedDeformableConvolution : DeformableConvolution {
  int64_t im2col_step = 64;
};
inline constexpr Builder<ModulatedDeformableConvolution> modulated_deformable_convolution;

// (out_grad, data, offset, weight) → data_grad, offset_grad
struct DeformableConvolutionGradData : DeformableConvolution {};
inline constexpr Builder<DeformableConvolutionGradData> deformable_convolution_grad_data;
// (out_grad, data, offset, weight for its shape) → weight_grad, and with a bias bias_grad
struct DeformableConvolutionGradWeight : DeformableConvolution {};
inline constexpr Builder<DeformableConvolutionGradWeight> deformable_convolution_grad_weight;

// (out_grad, data, offset, mask, weight) → data_grad, offset_grad, mask_grad
struct ModulatedDeformableConvolutionGradData : ModulatedDeformableConvolution {};
inline constexpr Builder<ModulatedDeformableConvolutionGradData> modulated_deformable_convolution_grad_data;
// (out_grad, data, offset, mask, weight for its shape) → weight_grad, and with a bias bias_grad
struct ModulatedDeformableConvolutionGradWeight : ModulatedDeformableConvolution {};
inline constexpr Builder<ModulatedDeformableConvolutionGradWeight> modulated_deformable_convolution_grad_weight;

}  // namespace symbind
