// Convolutions for tests that compare implementations.
#pragma once

#include <array>
#include <string>

#include "symbind/ops/conv_fused.h"

namespace symbind::testing {

struct ConvCase {
  Shape data;
  Convolution params;
};

inline std::string described(const ConvCase& c) {
  return join("data ", c.data, " kernel ", print(c.params.kernel), " stride ", print(c.params.stride), " dilate ",
              print(c.params.dilate), " pad ", print(c.params.pad), " filters ", c.params.num_filter, " groups ",
              c.params.num_group, c.params.layout ? " channels last" : "");
}

// With the operators that the bits of `which` select (a norm before it only without padding), and one of four
// activations.
inline ConvolutionFused fused_with(const Convolution& params, int which, int activation) {
  ConvolutionFused fused{params};
  fused.norm_before = which & 1;
  for (const int64_t pad : params.pad) fused.norm_before = fused.norm_before && pad == 0;
  fused.norm = which & 2;
  fused.norm_eps = fused.norm_before_eps = 1.5;  // values are above -1
  fused.norm_fix_gamma = which & 4;
  fused.sum = which & 8;
  fused.sum_is_spent = which & 16;
  fused.act_type = std::array<const char*, 4>{"", "relu", "tanh", "sigmoid"}[static_cast<size_t>(activation % 4)];
  return fused;
}

}  // namespace symbind::testing
