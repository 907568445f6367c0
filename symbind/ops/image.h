// Preprocessing of images: one image, (rows, columns, channels), or a batch of them, (n, rows, columns, channels).
// Values are whole numbers from 0 to 255 or floating ones. The random operators draw one factor per call.
#pragma once

#include "symbind/core/fixed_string.h"
#include "symbind/graph/builder.h"
#include "symbind/ops/composition.h"

namespace SYMBIND_API symbind {

// (rows, columns, channels) → (channels, rows, columns) in float32, divided by 255.
struct ImageToTensor {};
inline constexpr Builder<ImageToTensor> image_to_tensor;

// Normalizes such tensors, channel by channel.
struct ImageNormalize {
  std::vector<double> mean = {0, 0, 0, 0};  // one number is that of every channel
  std::vector<double> std = {1, 1, 1, 1};
};
inline constexpr Builder<ImageNormalize> image_normalize;

// The same for pixels of 8 bits, times `scale`, as numbers of another type.
struct NormalizePixels : ImageNormalize {
  double scale = 1;
  DType dtype = DType::float32;
};
inline constexpr Builder<NormalizePixels> normalize_pixels;

struct ImageResize {
  Tuple size = {};  // (n) or (columns, rows)
  bool keep_ratio = false;
  int64_t interp = 1;  // 0 nearest, 1 bilinear, 2 bicubic, 3 by area, 4 Lanczos
};
inline constexpr Builder<ImageResize> image_resize;

struct ImageCrop {
  Required<int64_t> x = {};
  Required<int64_t> y = {};
  Required<int64_t> width = {};
  Required<int64_t> height = {};
};
inline constexpr Builder<ImageCrop> image_crop;

// "_image_flip_left_right", "_image_flip_top_bottom", and the random forms, which flip in half of the calls.
template <FixedString name>
struct ImageFlip {};
inline constexpr Builder<ImageFlip<"_image_flip_left_right">> image_flip_left_right;
inline constexpr Builder<ImageFlip<"_image_flip_top_bottom">> image_flip_top_bottom;
inline constexpr Builder<ImageFlip<"_image_random_flip_left_right">> image_random_flip_left_right;
inline constexpr Builder<ImageFlip<"_image_random_flip_top_bottom">> image_random_flip_top_bottom;

// By a random factor between min_factor and max_factor: "_image_random_brightness", …contrast, …saturation, …hue.
template <FixedString name>
struct ImageRandom {
  Required<double> min_factor = {};
  Required<double> max_factor = {};
};
inline constexpr Builder<ImageRandom<"_image_random_brightness">> image_random_brightness;
inline constexpr Builder<ImageRandom<"_image_random_contrast">> image_random_contrast;
inline constexpr Builder<ImageRandom<"_image_random_saturation">> image_random_saturation;
inline constexpr Builder<ImageRandom<"_image_random_hue">> image_random_hue;

// All four, in random order, each by a factor from 1 - x to 1 + x (hue: from -x to x).
struct ImageRandomColorJitter {
  Required<double> brightness = {};
  Required<double> contrast = {};
  Required<double> saturation = {};
  Required<double> hue = {};
};
inline constexpr Builder<ImageRandomColorJitter> image_random_color_jitter;

// Colours shifted along the three principal components of the colours of natural images, by alpha.
struct ImageAdjustLighting {
  Required<std::vector<double>> alpha = {};
};
inline constexpr Builder<ImageAdjustLighting> image_adjust_lighting;
struct ImageRandomLighting {
  double alpha_std = 0.05;
};
inline constexpr Builder<ImageRandomLighting> image_random_lighting;

// (out_grad, data for its shape) → data_grad
struct ImageToTensorGrad {};
inline constexpr Builder<ImageToTensorGrad> image_to_tensor_grad;
struct ImageCropGrad : ImageCrop {};
inline constexpr Builder<ImageCropGrad> image_crop_grad;

Symbol network_of(const ImageToTensor& params, const ComposedInputs& in);
Symbol network_of(const ImageToTensorGrad& params, const ComposedInputs& in);
Symbol network_of(const ImageCrop& params, const ComposedInputs& in);
Symbol network_of(const ImageCropGrad& params, const ComposedInputs& in);
Symbol network_of(const ImageFlip<"_image_flip_left_right">& params, const ComposedInputs& in);
Symbol network_of(const ImageFlip<"_image_flip_top_bottom">& params, const ComposedInputs& in);

}  // namespace symbind
