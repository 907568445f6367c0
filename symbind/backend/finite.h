// Elementwise tests of numbers, for every device.
#pragma once

namespace symbind {

// Neither infinite nor NaN.
constexpr bool is_finite(double x) { return x - x == 0; }

// |x - y| ≤ atol + rtol·|y|; infinities are close only to themselves, NaN to itself if equal_nan.
struct IsClose {
  double rtol, atol;
  bool equal_nan;

  constexpr bool operator()(double x, double y) const {
    if (x != x && y != y) return equal_nan;
    if (!is_finite(x) || !is_finite(y)) return x == y;
    const double away = x < y ? y - x : x - y, size = y < 0 ? -y : y;
    return away <= atol + rtol * size;
  }
};

}  // namespace symbind
