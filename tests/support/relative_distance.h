// How far apart two arrays are as a whole, for gradients of networks in which a rounding can switch single elements of
// a ReLU on or off.
#pragma once

#include <algorithm>
#include <cmath>

#include "symbind/core/ndarray.h"

namespace symbind::testing {

// |actual - expected| / |expected|.
inline double relative_distance(const NDArray& actual, const NDArray& expected) {
  const auto a = actual.to_vector<double>(), b = expected.to_vector<double>();
  double apart = 0, size = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    apart += (a[i] - b[i]) * (a[i] - b[i]);
    size += b[i] * b[i];
  }
  return std::sqrt(apart / std::max(size, 1e-12));
}

}  // namespace symbind::testing
