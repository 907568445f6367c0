// A convolution with the operators that the fuse pass fuses into it. Only the pass creates it.
#pragma once

#include "symbind/ops/conv.h"

namespace symbind {

// In the order they are applied: a BatchNorm with given statistics before the convolution, the convolution itself with
// its bias, a BatchNorm after it, the sum with another array, an activation. For data of 16 bits weight and bias may be
// float32: they are rounded to the type of the data, once, after the norms (whose parameters are float32, as
// BatchNorm's) are folded into them.
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

// The indices of its inputs; -1 for a missing one. The four of a norm are gamma, beta, moving_mean, moving_var.
struct ConvolutionFusedInputs {
  int bias = -1, norm_before = -1, norm = -1, sum = -1;
};
ConvolutionFusedInputs inputs_of(const ConvolutionFused& params);

// The inputs from which the folded weight and bias are computed.
std::vector<int> folded_inputs(const ConvolutionFused& params);

}  // namespace symbind
