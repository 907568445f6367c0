// A convolution with what the fuse pass takes into it. It is not meant to be written by hand.
#pragma once

#include "symbind/ops/conv.h"

namespace symbind {

// In the order they are applied: a BatchNorm with given statistics before the convolution, the convolution itself with
// its bias, a BatchNorm after it, the sum with another array, an activation.
struct ConvolutionFused : Convolution {
  bool norm_before = false;
  double norm_before_eps = 0;
  bool norm_before_fix_gamma = false;
  bool norm = false;
  double norm_eps = 0;
  bool norm_fix_gamma = false;
  bool sum = false;
  bool sum_is_spent = false;  // the added array is not read afterwards: the result may overwrite it
  std::string act_type = {};  // Activation's; empty: none

  bool has_norms() const { return norm_before || norm; }
};
inline constexpr Builder<ConvolutionFused> convolution_fused;

// Where its inputs are; -1 where there is none. The four of a norm are gamma, beta, moving_mean, moving_var.
struct ConvolutionFusedInputs {
  int bias = -1, norm_before = -1, norm = -1, sum = -1;
};
ConvolutionFusedInputs inputs_of(const ConvolutionFused& params);

// The inputs that make the weight and the bias once the norms are folded into them.
std::vector<int> folded_inputs(const ConvolutionFused& params);

}  // namespace symbind
