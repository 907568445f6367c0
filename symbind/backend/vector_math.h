// exp, log, tanh and sigmoid for float without branches or tables, so that loops over them become vector instructions
// and CPU and GPU compute the same formula. Errors are below 1.5 units in the last place, for sigmoid below 2.5; a
// sigmoid smaller than any normal number is zero. Infinities, NaN and overflow come out as in <math.h>. Other types
// call <math.h>.
//
// The polynomials are least-squares fits at Chebyshev points of the remainder after the leading terms.
#pragma once

#include "symbind/backend/freestanding.h"

namespace symbind::vector_math {

// 2 to the power of a whole number between -126 and 127; others give anything.
constexpr float power_of_two(uint32_t exponent) { return freestanding::bit_cast<float>((exponent + 127u) << 23); }

// e^x = 2^n · e^r with n whole and |r| ≤ ln(2)/2. The scale 2^n is applied in two halves, so that results close to
// overflow and below the smallest normal number come out right.
constexpr float exp(float x) {
  x = x > 89.0f ? 89.0f : x;  // beyond these it is infinity and zero; NaN passes both
  x = x < -104.0f ? -104.0f : x;
  constexpr float shifter = 12582912.0f;  // 1.5 · 2^23: adding it rounds to a whole number, kept in the lowest bits
  const float shifted = x * 1.44269504f + shifter;
  const float n = shifted - shifter;
  const float r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
  float p = 1.39339094e-3f;
  p = p * r + 8.36335290e-3f;
  p = p * r + 4.16664626e-2f;
  p = p * r + 1.66665759e-1f;
  p = p * r + 5.00000001e-1f;
  p = p * (r * r) + r;
  const uint32_t whole = freestanding::bit_cast<uint32_t>(shifted) - freestanding::bit_cast<uint32_t>(shifter);
  const uint32_t half = static_cast<uint32_t>(static_cast<int32_t>(whole) >> 1);
  return (p + 1.0f) * power_of_two(half) * power_of_two(whole - half);
}

// x = 2^n · (1 + f) with 1 + f between √½ and √2; log(1 + f) by the series of atanh(s), s = f / (2 + f).
constexpr float log(float x) {
  const float positive = x < 1.17549435e-38f ? x * 8388608.0f : x;  // numbers below the normal ones are scaled up
  const uint32_t bits = freestanding::bit_cast<uint32_t>(positive);
  const uint32_t from_root = bits - 0x3f3504f3u;  // √½
  const float n = static_cast<float>(static_cast<int32_t>(from_root) >> 23) - (x < 1.17549435e-38f ? 23.0f : 0.0f);
  const float f = freestanding::bit_cast<float>((from_root & 0x007fffffu) + 0x3f3504f3u) - 1.0f;
  const float s = f / (2.0f + f);
  const float z = s * s;
  float series = 0.222222222f;
  series = series * z + 0.285714286f;
  series = series * z + 0.4f;
  series = series * z + 0.666666667f;
  series = series * z;
  const float half_square = 0.5f * f * f;
  const float tail = s * (half_square + series) + n * -2.12194440e-4f;
  const float finite = (tail - half_square) + f + n * 0.693359375f;
  constexpr float infinity = freestanding::infinity<float>();
  const float above = x < infinity ? finite : x;  // infinity, and NaN
  const float at_zero = x == 0.0f ? -infinity : above;
  return x < 0.0f ? freestanding::quiet_nan<float>() : at_zero;
}

// Near zero an odd polynomial, elsewhere 1 - 2 / (e^2|x| + 1).
constexpr float tanh(float x) {
  const float magnitude = x < 0.0f ? -x : x;
  const float z = x * x;
  float p = 2.29584126e-3f;
  p = p * z + -8.34698049e-3f;
  p = p * z + 2.17699609e-2f;
  p = p * z + -5.39594059e-2f;
  p = p * z + 1.33333043e-1f;
  p = p * z + -3.33333332e-1f;
  const float near = p * z * x + x;
  const float far = 1.0f - 2.0f / (exp(2.0f * magnitude) + 1.0f);
  const float far_signed = x < 0.0f ? -far : far;
  return magnitude < 0.625f ? near : far_signed;
}

constexpr float sigmoid(float x) { return 1.0f / (1.0f + exp(-x)); }

// Other types.
template <class T>
constexpr T exp(T x) {
  return libm::exp(x);
}
template <class T>
constexpr T log(T x) {
  return libm::log(x);
}
template <class T>
constexpr T tanh(T x) {
  return libm::tanh(x);
}
template <class T>
constexpr T sigmoid(T x) {
  return T(1) / (T(1) + libm::exp(-x));
}

}  // namespace symbind::vector_math
