#include "symbind/backend/cpu/fold_norm.h"

#include <cmath>

#include "symbind/backend/cpu/convert_array.h"
#include "symbind/backend/cpu/loops.h"

namespace symbind::cpu_backend {
namespace {

// A BatchNorm of a channel as an affine map: x · scale + shift.
struct Affine {
  double scale = 1, shift = 0;
};

// `first`: the input that holds gamma; the other three follow it.
Affine affine_at(const Args& args, int first, bool fix_gamma, double eps, int64_t channel) {
  if (first < 0) return {};
  const auto value = [&](int input) {
    return static_cast<double>(args.in<float>(static_cast<size_t>(first + input))[channel]);
  };
  const double scale = (fix_gamma ? 1 : value(0)) / std::sqrt(value(3) + eps);
  return {scale, value(1) - value(2) * scale};
}

}  // namespace

// With x·s + t before and after: y = ((Σ w·(s₁·x + t₁)) + b)·s₂ + t₂ = Σ (s₂·w·s₁)·x + (b + Σ w·t₁)·s₂ + t₂. The sum
// over t₁ is the same at all positions only without padding, so the pass folds a preceding norm only then.
void fold_norms(const ConvolutionFused& p, const Tensor& weight, const Args& args, float* folded_weight,
                float* folded_bias) {
  const ConvolutionFusedInputs at = inputs_of(p);
  const Shape& shape = weight.shape;
  // The input itself, or its float32 values where the result will be.
  const auto as_float = [&](size_t input, float* result, int64_t count) -> const float* {
    if (weight.dtype == DType::float32) return args.in<float>(input);
    convert_array(result, DType::float32, args.inputs[input], weight.dtype, count);
    return result;
  };
  const float* const from = as_float(1, folded_weight, shape.size());
  const bool has_bias = at.bias >= 0;
  const float* const bias = has_bias ? as_float(static_cast<size_t>(at.bias), folded_bias, p.num_filter) : nullptr;
  const bool channels_last = is_channels_last(p.layout);
  const int64_t channels = shape[channels_last ? shape.rank() - 1 : 1], inner = shape.size(1, shape.rank());
  const int64_t window = inner / channels, group_filters = p.num_filter / p.num_group;
  for_elements(
      p.num_filter,
      [=](int64_t begin, int64_t end) {
        for (int64_t filter = begin; filter < end; ++filter) {
          const Affine after = affine_at(args, at.norm, p.norm_fix_gamma, p.norm_eps, filter);
          double sum = has_bias ? bias[filter] : 0;
          for (int64_t channel = 0; channel < channels; ++channel) {
            const Affine before = affine_at(args, at.norm_before, p.norm_before_fix_gamma, p.norm_before_eps,
                                            filter / group_filters * channels + channel);
            const int64_t start = filter * inner + (channels_last ? channel : channel * window),
                          step = channels_last ? channels : 1;
            const auto scale = static_cast<float>(before.scale * after.scale);
            double weights = 0;
            for (int64_t i = 0; i < window; ++i) {
              const float value = from[start + i * step];
              folded_weight[start + i * step] = value * scale;
              weights += value;
            }
            sum += weights * before.shift;
          }
          folded_bias[filter] = static_cast<float>(sum * after.scale + after.shift);
        }
      },
      element_grain / (inner + 1) + 1);
}

}  // namespace symbind::cpu_backend
