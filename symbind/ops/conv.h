// Convolution in one, two and three dimensions, and its two gradients.
#pragma once

#include <array>

#include "symbind/graph/builder.h"
#include "symbind/ops/choices.h"

namespace SYMBIND_API symbind {

// stride, dilate and pad are as long as kernel once the struct is checked.
struct Convolution {
  Required<Tuple> kernel = {};
  Tuple stride = {};
  Tuple dilate = {};
  Tuple pad = {};
  Required<int64_t> num_filter = {};
  int64_t num_group = 1;
  int64_t workspace = 1024;
  bool no_bias = false;
  std::optional<std::string> cudnn_tune = {};
  bool cudnn_off = false;
  std::optional<std::string> layout = {};
};
inline constexpr Builder<Convolution> convolution;

// (out_grad, weight, data for its shape) → data_grad
struct ConvolutionGradData : Convolution {};
inline constexpr Builder<ConvolutionGradData> convolution_grad_data;

// (out_grad, data, weight for its shape) → weight_grad, and with a bias bias_grad
struct ConvolutionGradWeight : Convolution {};
inline constexpr Builder<ConvolutionGradWeight> convolution_grad_weight;

// Fills the tuples that were left out, and checks what concerns more than one field.
void complete(Convolution& params);
// Infers the shapes of data, weight, bias and output from each other.
void infer_convolution(const Convolution& params, Shapes& shapes);

// Is the layout parameter one with channels after the spatial axes (NWC, NHWC, NDHWC)? The weight then is
// (filters, kernel…, channels of a group).
bool is_channels_last(const std::optional<std::string>& layout);

// The largest number a window parameter may hold: sums and products of two of them stay far from overflow.
inline constexpr int64_t largest_window = int64_t{1} << 30;

// The sizes of a convolution of known shapes, always with three spatial axes (missing ones are first and have extent 1,
// stride 1, no padding).
struct ConvolutionSize {
  int64_t batch, channels, filters, groups;
  std::array<int64_t, 3> in, out, kernel, stride, dilate, pad;
  bool channels_last;

  int64_t group_channels() const { return channels / groups; }
  int64_t group_filters() const { return filters / groups; }
  int64_t in_size() const { return in[0] * in[1] * in[2]; }
  int64_t out_size() const { return out[0] * out[1] * out[2]; }
  int64_t kernel_size() const { return kernel[0] * kernel[1] * kernel[2]; }

  // Elements of the arrays.
  int64_t data_size() const { return batch * channels * in_size(); }
  int64_t weight_size() const { return filters * group_channels() * kernel_size(); }
  int64_t output_size() const { return batch * filters * out_size(); }
};
ConvolutionSize size_of(const Convolution& params, const Shape& data, const Shape& output);

// The products that a convolution of any kind, or one of its gradients, adds up. `array` is the one whose channels the
// first axis of the weight stands for (of a convolution the output): each of its elements meets the rest of the weight.
double products_with_weight(const Shape& array, const Shape& weight);

}  // namespace symbind
