#include "symbind/train/initializer_fill.h"

#include <cmath>
#include <numbers>

#include "symbind/core/random.h"
#include "symbind/train/orthonormal.h"

namespace symbind::init {
namespace {

template <class FromWords>
std::vector<float> random_values(const InitDesc& desc, const NDArray& array, FromWords from_words) {
  require(is_floating(array.dtype()), where(desc), "random values need a floating type: ", array.dtype());
  const RandomCursor cursor = host_random().take(1);
  std::vector<float> values(static_cast<size_t>(array.size()));
  for (size_t i = 0; i < values.size(); i += 4) {
    const PhiloxBlock block = philox(cursor.key, cursor.draw, i / 4);
    float four[4];
    from_words(block, four);
    for (size_t k = 0; k < 4 && i + k < values.size(); ++k) values[i + k] = four[k];
  }
  return values;
}

std::vector<float> uniform_values(const InitDesc& desc, const NDArray& array, double scale) {
  const float low = static_cast<float>(-scale), width = static_cast<float>(2 * scale);
  return random_values(desc, array, [=](const PhiloxBlock& block, float* four) {
    for (int k = 0; k < 4; ++k) four[k] = low + width * unit_float(block.words[k]);
  });
}

// Box-Muller transform: two words give two normal numbers. 1 - u is in (0, 1], so the logarithm is finite.
std::vector<float> normal_values(const InitDesc& desc, const NDArray& array, double sigma) {
  return random_values(desc, array, [=](const PhiloxBlock& block, float* four) {
    for (int k = 0; k < 4; k += 2) {
      const double radius = sigma * std::sqrt(-2 * std::log(1 - double{unit_float(block.words[k])}));
      const double angle = 2 * std::numbers::pi * double{unit_float(block.words[k + 1])};
      four[k] = static_cast<float>(radius * std::cos(angle));
      four[k + 1] = static_cast<float>(radius * std::sin(angle));
    }
  });
}

}  // namespace

std::string where(const InitDesc& desc) { return join("[initializer of ", desc.name, "] "); }

void fill_uniform(const InitDesc& desc, NDArray& array, double scale) {
  array.copy_from(uniform_values(desc, array, scale));
}

void fill_normal(const InitDesc& desc, NDArray& array, double sigma) {
  array.copy_from(normal_values(desc, array, sigma));
}

void fill_xavier(const InitDesc& desc, NDArray& array, const XavierOptions& options) {
  const Shape& shape = array.shape();
  require(shape.rank() >= 2, where(desc), "xavier needs an array of at least two axes: ", shape);
  const auto space = static_cast<double>(shape.size(2, shape.rank()));
  const double inputs = static_cast<double>(shape[1]) * space, outputs = static_cast<double>(shape[0]) * space;
  const double factor = options.factor_type == "in"    ? inputs
                        : options.factor_type == "out" ? outputs
                                                       : (inputs + outputs) / 2;
  const double scale = factor > 0 ? std::sqrt(options.magnitude / factor) : 0;
  if (options.rnd_type == "uniform")
    fill_uniform(desc, array, scale);
  else
    fill_normal(desc, array, scale);
}

void fill_orthogonal(const InitDesc& desc, NDArray& array, double scale, bool normal) {
  const Shape& shape = array.shape();
  require(shape.rank() >= 2, where(desc), "orthogonal needs an array of at least two axes: ", shape);
  const std::vector<float> random = normal ? normal_values(desc, array, 1) : uniform_values(desc, array, 1);
  std::vector<double> values = orthonormal(random, shape[0], shape.size(1, shape.rank()));
  for (double& value : values) value *= scale;
  array.copy_from(values);
}

void fill_bilinear(const InitDesc& desc, NDArray& array) {
  require(array.rank() == 4, where(desc), "bilinear weights have four axes: ", array.shape());
  const int64_t height = array.shape()[2], width = array.shape()[3];
  const double factor = std::ceil(static_cast<double>(width) / 2);
  const double center = (2 * factor - 1 - std::fmod(factor, 2)) / (2 * factor);
  std::vector<float> values(static_cast<size_t>(array.size()));
  for (size_t i = 0; i < values.size(); ++i) {
    const auto position = static_cast<int64_t>(i);
    const auto x = static_cast<double>(position % width), y = static_cast<double>(position / width % height);
    values[i] = static_cast<float>((1 - std::abs(x / factor - center)) * (1 - std::abs(y / factor - center)));
  }
  array.copy_from(values);
}

void fill_identity_map(const InitDesc& desc, NDArray& array) {
  require(array.size() == 6, where(desc), "an affine map of the plane has six numbers: ", array.shape());
  array.copy_from(std::vector<float>{1, 0, 0, 0, 1, 0});
}

}  // namespace symbind::init
