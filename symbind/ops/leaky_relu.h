// Rectifiers with a nonzero output for negative inputs.
#pragma once

#include "symbind/graph/builder.h"
#include "symbind/ops/choices.h"

namespace SYMBIND_API symbind {

struct LeakyReLU {
  std::string act_type = "leaky";  // elu, gelu, leaky, prelu, rrelu, selu
  double slope = 0.25;
  double lower_bound = 0.125;
  double upper_bound = 0.334;
};
inline constexpr Builder<LeakyReLU> leaky_relu;

// (out_grad, data[, gamma or mask]) → data_grad[, gamma_grad]
struct LeakyReLUGrad : LeakyReLU {};
inline constexpr Builder<LeakyReLUGrad> leaky_relu_grad;

}  // namespace symbind
