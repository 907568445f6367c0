// Functions of floats that are computed in double precision, as far as that is needed, without branches or tables, so
// that loops over them become vector instructions. Each holds for the arguments named above it; errors are below one
// unit of the last place of a float, those of sin and cos below 1.5, of tan below 4; that of gelu, in float, is named
// there. The polynomials are least-squares fits at Chebyshev points.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "symbind/backend/vector_math.h"

namespace symbind::cpu_backend::wide_math {

// ---- Logarithms and powers ------------------------------------------------------------------------------------------

// x = 2^exponent · m with m between √½ and √2; log_of_rest is the logarithm of m. For positive normal numbers.
struct PartsOfLog {
  double exponent, log_of_rest;
};
inline PartsOfLog parts_of_log(double x) {
  constexpr uint64_t root_half = 0x3fe6a09e667f3bcd, fraction = 0x000fffffffffffff, bias = 1024;
  const uint64_t from_root = std::bit_cast<uint64_t>(x) - root_half + (bias << 52);
  // The exponent in the lowest bits of 2^52 is a double without a conversion, which vectors of 64 bits lack.
  const double exponent = std::bit_cast<double>((from_root >> 52) | 0x4330000000000000) - (4503599627370496.0 + bias);
  const double f = std::bit_cast<double>((from_root & fraction) + root_half) - 1.0;
  const double s = f / (2.0 + f), z = s * s;
  double p = 8.41161951498510529e-02;
  p = p * z + 9.06167179269590506e-02;
  p = p * z + 1.11116907853323718e-01;
  p = p * z + 1.42857084888001001e-01;
  p = p * z + 2.00000000266699229e-01;
  p = p * z + 3.33333333332922921e-01;
  return {exponent, 2.0 * s + 2.0 * s * (z * p)};
}
inline double log(double x) {
  const PartsOfLog parts = parts_of_log(x);
  return parts.exponent * 0.693147180559945309 + parts.log_of_rest;
}

// 2^x for x between -1000 and 1000.
inline double exp2(double x) {
  constexpr double shifter = 6755399441055744.0;  // 1.5 · 2^52: adding it rounds to a whole number
  const double shifted = x + shifter, f = x - (shifted - shifter);
  double p = 1.54673651401161691e-04;
  p = p * f + 1.34004321963255451e-03;
  p = p * f + 9.61803595811320557e-03;
  p = p * f + 5.55032721413185187e-02;
  p = p * f + 2.40226510841527185e-01;
  p = p * f + 6.93147206710656216e-01;
  const uint64_t whole = std::bit_cast<uint64_t>(shifted) - std::bit_cast<uint64_t>(shifter);
  return (p * f + 1.0) * std::bit_cast<double>((whole + 1023) << 52);
}

// a^b for positive normal a and finite b.
inline float pow(float a, float b) {
  const PartsOfLog parts = parts_of_log(static_cast<double>(a));
  const double exponent = static_cast<double>(b) * (parts.exponent + parts.log_of_rest * 1.44269504088896341);
  const double low = exponent < -200.0 ? -200.0 : exponent;  // beyond these a float is 0 or infinity
  return static_cast<float>(exp2(low > 200.0 ? 200.0 : low));
}

// ---- Trigonometric functions ----------------------------------------------------------------------------------------

// Between -65536 and 65536.
struct Angle {
  float sine, cosine;  // of the remainder of a division by π/2, between -π/4 and π/4
  uint32_t quarters;
};
inline Angle divide_by_quarter(float x) {
  constexpr float shifter = 12582912.0f;  // 1.5 · 2^23
  const float shifted = x * 0.636619772f + shifter, n = shifted - shifter;
  // π/2 in two parts: the product with the first, of 33 bits, is exact.
  constexpr double high = 1.57079632673412561417, low = 6.07710050650619224932e-11;
  const double rest = static_cast<double>(x) - static_cast<double>(n) * high;
  const auto r = static_cast<float>(rest - static_cast<double>(n) * low);
  const float z = r * r;
  float s = 2.71744922e-06f;
  s = s * z + -1.98392417e-04f;
  s = s * z + 8.33332908e-03f;
  s = s * z + -1.66666666e-01f;
  float c = -2.72012313e-07f;
  c = c * z + 2.47994071e-05f;
  c = c * z + -1.38888833e-03f;
  c = c * z + 4.16666666e-02f;
  const float sine = s * (z * r) + r, cosine = c * (z * z) + (1.0f - 0.5f * z);
  return {r == 0.0f ? r : sine, cosine, std::bit_cast<uint32_t>(shifted)};
}
inline float with_sign(float value, uint32_t quarters) {
  return std::bit_cast<float>(std::bit_cast<uint32_t>(value) ^ ((quarters & 2u) << 30));
}
inline float sin(float x) {
  const Angle angle = divide_by_quarter(x);
  return with_sign((angle.quarters & 1u) != 0 ? angle.cosine : angle.sine, angle.quarters);
}
inline float cos(float x) {
  const Angle angle = divide_by_quarter(x);
  return with_sign((angle.quarters & 1u) != 0 ? angle.sine : angle.cosine, angle.quarters + 1);
}
inline float tan(float x) {
  const Angle angle = divide_by_quarter(x);
  const bool odd = (angle.quarters & 1u) != 0;
  return (odd ? -angle.cosine : angle.sine) / (odd ? angle.sine : angle.cosine);
}

// ---- The gamma function ---------------------------------------------------------------------------------------------

// x · (x + 1) · … · (x + 7) and its derivative: by it arguments below 8 become those above, where the asymptotic series
// holds.
struct Rising {
  double product, slope;
};
inline Rising rising(double x) {
  double product = x, slope = 1;
  for (int i = 1; i < 8; ++i) {
    const double factor = x + i;
    slope = slope * factor + product;
    product *= factor;
  }
  return {product, slope};
}

// log Γ(x) for positive normal x.
inline float log_gamma(float given) {
  const auto x = static_cast<double>(given);
  const bool is_low = x < 8;
  const double z = is_low ? x + 8 : x, i = 1 / z, t = i * i;
  double series = 7.66272057360107032e-04;
  series = series * t + -5.94093018253930342e-04;
  series = series * t + 7.93643079739099781e-04;
  series = series * t + -2.77777775644136218e-03;
  series = series * t + 8.33333333333167725e-02;
  const double high = (z - 0.5) * log(z) - z + (0.918938533204672742 + series * i);
  const auto result = static_cast<float>(high - log(is_low ? rising(x).product : 1.0));
  return given == 1.0f || given == 2.0f ? 0.0f : result;
}

// The derivative of log Γ for positive normal x.
inline float digamma(float given) {
  const auto x = static_cast<double>(given);
  const bool is_low = x < 8;
  const double z = is_low ? x + 8 : x, i = 1 / z, t = i * i;
  double series = 6.70221909738593150e-03;
  series = series * t + -4.15219378300118232e-03;
  series = series * t + 3.96814293896408706e-03;
  series = series * t + -8.33333295792589718e-03;
  series = series * t + 8.33333333329173420e-02;
  const Rising below = rising(is_low ? x : 1.0);
  const double fallen = below.slope / below.product;
  return static_cast<float>(log(z) - 0.5 * i - series * t - (is_low ? fallen : 0.0));
}

// ---- Others ---------------------------------------------------------------------------------------------------------

// x times the probability that a normal number is below it. Half of erfc(a), a = |x| / √2, is the probability that one
// is above |x|; erfc(a) = e^-q, where q is a polynomial. The error is below 1.2e-7 |x|, as that of rounding 1 + erf,
// and for x above -5 below 6e-6 of the result.
inline float gelu(float x) {
  const float a = (x < 0.0f ? -x : x) * 0.707106781f;
  const float inside = a < 4.0f ? a : 4.0f;
  float q = 5.42260011e-7f;
  q = q * inside + -1.16963183e-5f;
  q = q * inside + 1.08194210e-4f;
  q = q * inside + -5.44707582e-4f;
  q = q * inside + 1.41959696e-3f;
  q = q * inside + 1.86958670e-4f;
  q = q * inside + -1.94162298e-2f;
  q = q * inside + 1.02882728e-1f;
  q = q * inside + 6.36599660e-1f;
  q = q * inside + 1.12838054f;
  q = q * inside + -1.42800216e-8f;
  const vector_math::PartsOfExp e = vector_math::parts_of_exp(-q);
  const float erfc = a < 4.0f ? (e.p + 1.0f) * vector_math::power_of_two(e.n) : 0.0f;
  return 0.5f * x * (x < 0.0f ? erfc : 2.0f - erfc);
}

// For finite numbers.
inline float hypot(float a, float b) {
  const auto x = static_cast<double>(a), y = static_cast<double>(b);
  return static_cast<float>(std::sqrt(x * x + y * y));
}

}  // namespace symbind::cpu_backend::wide_math
