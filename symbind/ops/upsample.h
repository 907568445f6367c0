// Upsampling of images.
#pragma once

#include "symbind/graph/builder.h"
#include "symbind/ops/choices.h"
#include "symbind/ops/deconv.h"

namespace SYMBIND_API symbind {

struct UpSampling {
  Required<int64_t> scale = {};
  int64_t num_filter = 0;
  Required<std::string> sample_type = {};
  std::string multi_input_mode = "concat";
  Required<int64_t> num_args = {};
  int64_t workspace = 512;
};
inline constexpr Builder<UpSampling> up_sampling;

// For nearest sampling: (out_grad, the inputs for their shapes) → the gradient of each
struct UpSamplingGrad : UpSampling {};
inline constexpr Builder<UpSamplingGrad> up_sampling_grad;

// Bilinear sampling as a transposed convolution of every channel, whose weight is initialized to a bilinear filter.
Deconvolution bilinear_deconvolution(const UpSampling& params);

}  // namespace symbind
