// Arrays that try every rule of max pooling: ties, NaN, infinities and zeros of both signs.
#pragma once

#include <cmath>
#include <random>
#include <vector>

#include "symbind/core/ndarray.h"

namespace symbind::testing {

inline constexpr double pooled_values[] = {NAN, -INFINITY, INFINITY, -1, 0, -0.0, 2};

// `kinds` of the values above, from the first on.
inline NDArray pooled_array(const Shape& shape, size_t kinds, DType dtype) {
  std::mt19937 random(static_cast<unsigned>(kinds));
  std::vector<double> values(static_cast<size_t>(shape.size()));
  for (double& value : values) value = pooled_values[random() % kinds];
  return array(values, shape, cpu(), dtype);
}

}  // namespace symbind::testing
