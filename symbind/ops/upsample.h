// Images made larger.
#pragma once

#include "symbind/graph/builder.h"

namespace symbind {

struct UpSampling {
  int64_t scale = required;
  int64_t num_filter = 0;
  std::string sample_type = required;
  std::string multi_input_mode = "concat";
  int64_t num_args = required;
  int64_t workspace = 512;
};
inline constexpr Builder<UpSampling> up_sampling;

// (out_grad, the inputs for their shapes) → the gradient of each
struct UpSamplingGrad : UpSampling {};
inline constexpr Builder<UpSamplingGrad> up_sampling_grad;

void register_upsample(OpRegistry& registry);

}  // namespace symbind
