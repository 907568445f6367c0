// Functions of <math.h> for float without branches or tables, so that loops over them become vector instructions and
// CPU and GPU compute the same formula. Errors in units of the last place are below 1.5 for exp, log and tanh, and
// below 4 for the others; a sigmoid smaller than any normal number is zero. Infinities, NaN and overflow behave as in
// <math.h>. Other types call <math.h>.
//
// The polynomials are weighted least-squares fits at Chebyshev points of the remainder after the leading terms.
#pragma once

#include "symbind/backend/freestanding.h"

namespace symbind::vector_math {

// 2 to the power of a whole number between -126 and 127; other exponents are undefined.
constexpr float power_of_two(uint32_t exponent) { return freestanding::bit_cast<float>((exponent + 127u) << 23); }

// e^x = 2^n · (1 + p) with n whole and 1 + p between √½ and √2.
struct PartsOfExp {
  float p;
  uint32_t n;
};
constexpr PartsOfExp parts_of_exp(float x) {
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
  return {p, freestanding::bit_cast<uint32_t>(shifted) - freestanding::bit_cast<uint32_t>(shifter)};
}

// e^x · 2^shift. The power of two is applied in two halves, so that results close to overflow and subnormal results are
// correct.
constexpr float scaled_exp(float x, int32_t shift) {
  x = x > 90.0f ? 90.0f : x;  // beyond these it is infinity and zero; NaN passes both
  x = x < -104.0f ? -104.0f : x;
  const PartsOfExp e = parts_of_exp(x);
  const uint32_t whole = e.n + static_cast<uint32_t>(shift);
  const uint32_t half = static_cast<uint32_t>(static_cast<int32_t>(whole) >> 1);
  return (e.p + 1.0f) * power_of_two(half) * power_of_two(whole - half);
}
constexpr float exp(float x) { return scaled_exp(x, 0); }

// 2^n · p + (2^n - 1), whose terms do not cancel.
constexpr float expm1(float x) {
  const float inside = x < -30.0f ? -30.0f : x > 60.0f ? 60.0f : x;
  const PartsOfExp e = parts_of_exp(inside);
  const float scale = power_of_two(e.n);
  const float result = e.n == 0u ? e.p : scale * e.p + (scale - 1.0f);
  const float finite = x > 60.0f ? exp(x) : result;
  return x == 0.0f ? x : finite;  // preserves -0
}

// x = 2^n · (1 + f) with 1 + f between √½ and √2; log(1 + f) = f - (rest), by the series of atanh(s), s = f / (2 + f).
struct PartsOfLog {
  float n, f, rest;
};
constexpr PartsOfLog parts_of_log(float x) {
  const float positive = x < 1.17549435e-38f ? x * 8388608.0f : x;  // subnormal numbers are scaled up
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
  return {n, f, half_square - s * (half_square + series)};
}
// The logarithm of x with special cases; `finite` is the result for positive finite x.
constexpr float log_or_special(float x, float finite) {
  constexpr float infinity = freestanding::infinity<float>();
  const float above = x < infinity ? finite : x;  // infinity, and NaN
  const float at_zero = x == 0.0f ? -infinity : above;
  return x < 0.0f ? freestanding::quiet_nan<float>() : at_zero;
}

constexpr float log(float x) {
  const PartsOfLog l = parts_of_log(x);
  const float tail = -l.rest + l.n * -2.12194440e-4f;
  return log_or_special(x, tail + l.f + l.n * 0.693359375f);
}
// Exact for powers of two.
constexpr float log2(float x) {
  const PartsOfLog l = parts_of_log(x);
  constexpr float high = 1.44140625f, low = 1.28863448e-3f;  // 1 / ln 2
  const float tail = l.f * low - l.rest * (high + low);
  return log_or_special(x, (tail + l.f * high) + l.n);
}
constexpr float log10(float x) {
  const PartsOfLog l = parts_of_log(x);
  constexpr float high = 0.43359375f, low = 7.00731902e-4f;  // 1 / ln 10
  const float tail = (l.f * low - l.rest * (high + low)) + l.n * 4.60503898e-6f;
  return log_or_special(x, (tail + l.f * high) + l.n * 0.301025391f);
}
// The logarithm of the sum, plus a correction for the rounding of the sum.
constexpr float log1p(float x) {
  const float sum = 1.0f + x, lost = sum - 1.0f;
  const float ratio = x > 1e8f ? 1.0f : x / lost;
  return lost == 0.0f ? x : log(sum) * ratio;
}
// log(1 + x) for x between 0 and 1, by the series of atanh(s), s = x / (2 + x).
constexpr float log1p_of_fraction(float x) {
  const float s = x / (2.0f + x);
  const float z = s * s;
  float series = 2.80276388e-1f;
  series = series * z + 2.79981732e-1f;
  series = series * z + 4.00217921e-1f;
  series = series * z + 6.66664124e-1f;
  return series * z * s + 2.0f * s;
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

// ---- The error function ---------------------------------------------------------------------------------------------

// Near zero an odd polynomial, elsewhere 1 - e^-q, where q is the polynomial of -log(1 - erf).
constexpr float erf(float x) {
  const float magnitude = x < 0.0f ? -x : x;
  const float z = x * x;
  float p = 8.70768348e-5f;
  p = p * z + -8.21792165e-4f;
  p = p * z + 5.20728370e-3f;
  p = p * z + -2.68617776e-2f;
  p = p * z + 1.12837361e-1f;
  p = p * z + -3.76126363e-1f;
  p = p * z + 1.28379167e-1f;
  const float near = p * x + x;
  const float a = magnitude > 4.0f ? 4.0f : magnitude;
  float q = 2.04773450e-5f;
  q = q * a + -4.27350809e-4f;
  q = q * a + 4.13678066e-3f;
  q = q * a + -2.50297015e-2f;
  q = q * a + 1.08142320e-1f;
  q = q * a + 6.33471080e-1f;
  q = q * a + 1.12945406f;
  q = q * a + -1.62154487e-4f;
  const float far = 1.0f - exp(-q);
  const float far_signed = x < 0.0f ? -far : far;
  return magnitude < 0.87f ? near : far_signed;
}

constexpr float inverse_erf_near(float w) {
  const float a = w - 2.5f;
  float p = -8.79105653e-9f;
  p = p * a + 2.32326443e-8f;
  p = p * a + 4.66170665e-7f;
  p = p * a + -3.46270476e-6f;
  p = p * a + -4.96334786e-6f;
  p = p * a + 2.18344439e-4f;
  p = p * a + -1.25274188e-3f;
  p = p * a + -4.17738678e-3f;
  p = p * a + 2.46640286e-1f;
  p = p * a + 1.50140936f;
  return p;
}
constexpr float inverse_erf_far(float w) {
  const float b = libm::sqrt(w) - 3.1f;
  float p = 1.00987513e-4f;
  p = p * b + -2.03286605e-4f;
  p = p * b + -2.35192731e-4f;
  p = p * b + 1.36645168e-3f;
  p = p * b + -2.75132941e-3f;
  p = p * b + 4.10720231e-3f;
  p = p * b + -5.68899309e-3f;
  p = p * b + 7.46164989e-3f;
  p = p * b + 1.00335571f;
  p = p * b + 2.93323164f;
  return p;
}
// The number whose error function is y: y times a polynomial of w = -log(1 - y²), beyond w = 5 of its root.
constexpr float inverse_erf(float y) {
  const float w = -log((1.0f - y) * (1.0f + y));
#ifdef __CUDA_ARCH__
  float p = 0;  // a branch: most warps have no element beyond 5
  if (w < 5.0f)
    p = inverse_erf_near(w);
  else
    p = inverse_erf_far(w);
#else
  const float near = inverse_erf_near(w), far = inverse_erf_far(w);
  const float p = w < 5.0f ? near : far;
#endif
  const float inside = y * p;
  return y == 1.0f || y == -1.0f ? y * freestanding::infinity<float>() : inside;
}

// ---- Hyperbolic functions and their inverses ------------------------------------------------------------------------

constexpr float sinh(float x) {
  const float magnitude = x < 0.0f ? -x : x;
  const float z = x * x;
  float p = 2.81695137e-6f;
  p = p * z + 1.98361598e-4f;
  p = p * z + 8.33335006e-3f;
  p = p * z + 1.66666665e-1f;
  const float near = p * z * x + x;
  const float half = scaled_exp(magnitude, -1), far = half - 0.25f / half;
  const float far_signed = x < 0.0f ? -far : far;
  return magnitude < 1.0f ? near : far_signed;
}
constexpr float cosh(float x) {
  const float half = scaled_exp(x < 0.0f ? -x : x, -1);
  return half + 0.25f / half;
}
// log(a + √(a² + 1)), as the logarithm of one and a remainder. The square of large numbers would overflow.
constexpr float asinh(float x) {
  const float magnitude = x < 0.0f ? -x : x;
  const float a = magnitude > 1e4f ? 1e4f : magnitude;
  const float near = log1p(a + a * a / (1.0f + libm::sqrt(a * a + 1.0f)));
  const float result = magnitude > 1e4f ? log(magnitude) + 0.693147181f : near;
  const float is_signed = x < 0.0f ? -result : result;
  return x == x && x != 0.0f ? is_signed : x;
}
constexpr float acosh(float x) {
  const float beyond = (x > 1e4f ? 1e4f : x) - 1.0f;
  const float near = log1p(beyond + libm::sqrt(beyond * (beyond + 2.0f)));
  return x > 1e4f ? log(x) + 0.693147181f : x < 1.0f ? freestanding::quiet_nan<float>() : near;
}
constexpr float atanh(float x) {
  const float magnitude = x < 0.0f ? -x : x;
  const float result = 0.5f * log1p(2.0f * magnitude / (1.0f - magnitude));
  const float is_signed = x < 0.0f ? -result : result;
  const float inside = magnitude > 1.0f ? freestanding::quiet_nan<float>() : is_signed;
  return x == 0.0f ? x : inside;
}

// ---- Inverses of trigonometric functions ----------------------------------------------------------------------------

inline constexpr float half_pi = 1.57079633f;

// An odd polynomial up to one; beyond, of the reciprocal.
constexpr float atan(float x) {
  const float magnitude = x < 0.0f ? -x : x;
  const float a = magnitude > 1.0f ? 1.0f / magnitude : magnitude;
  const float z = a * a;
  float p = -1.79359384e-3f;
  p = p * z + 1.09144808e-2f;
  p = p * z + -3.11776126e-2f;
  p = p * z + 5.79573591e-2f;
  p = p * z + -8.40343662e-2f;
  p = p * z + 1.09521811e-1f;
  p = p * z + -1.42642408e-1f;
  p = p * z + 1.99985482e-1f;
  p = p * z + -3.33332991e-1f;
  const float angle = p * z * a + a;
  const float result = magnitude > 1.0f ? half_pi - angle : angle;
  return x < 0.0f ? -result : x == 0.0f ? x : result;
}

// asin(a) = a + a · odd(a²) up to ½.
constexpr float rest_of_asin(float z) {
  float p = 4.21662863e-2f;
  p = p * z + 2.41795264e-2f;
  p = p * z + 4.54703741e-2f;
  p = p * z + 7.49529765e-2f;
  p = p * z + 1.66667525e-1f;
  return p * z;
}
// Beyond ½, asin(a) = π/2 - 2 · asin(√((1 - a) / 2)).
constexpr float asin(float x) {
  const float magnitude = x < 0.0f ? -x : x;
  const bool is_near = magnitude < 0.5f;
  const float z = is_near ? x * x : 0.5f * (1.0f - magnitude);
  const float a = is_near ? magnitude : libm::sqrt(z);
  const float angle = rest_of_asin(z) * a + a;
  const float result = is_near ? angle : half_pi - 2.0f * angle;
  return x < 0.0f ? -result : x == 0.0f ? x : result;
}
constexpr float acos(float x) {
  const float magnitude = x < 0.0f ? -x : x;
  const bool is_near = magnitude < 0.5f;
  const float z = is_near ? x * x : 0.5f * (1.0f - magnitude);
  const float a = is_near ? x : libm::sqrt(z);
  const float angle = rest_of_asin(z) * a + a;
  const float far = x < 0.0f ? 3.14159265f - 2.0f * angle : 2.0f * angle;
  return is_near ? half_pi - angle : far;
}

// ---- Roots ----------------------------------------------------------------------------------------------------------

// A third of the exponent as a first guess, and three steps of Halley's method.
constexpr float cbrt(float x) {
  const float magnitude = x < 0.0f ? -x : x;
  const bool is_small = magnitude < 1.17549435e-38f;  // subnormal: scaled by 2^24
  const float a = is_small ? magnitude * 16777216.0f : magnitude;
  float y = freestanding::bit_cast<float>(freestanding::bit_cast<uint32_t>(a) / 3u + 0x2a5137a0u);
  for (int i = 0; i < 3; ++i) {
    const float ratio = y * (y / a) * y;  // y³ / a, without overflow
    y = y - y * (ratio - 1.0f) / (2.0f * ratio + 1.0f);
  }
  const float root = is_small ? y * 0.00390625f : y;
  const float is_signed = x < 0.0f ? -root : root;
  return x == 0.0f || !(magnitude < freestanding::infinity<float>()) ? x : is_signed;
}

// Other types.
#define SYMBIND_OTHER_TYPES(name) \
  template <class T>              \
  constexpr T name(T x) {         \
    return libm::name(x);         \
  }
SYMBIND_OTHER_TYPES(acos)
SYMBIND_OTHER_TYPES(acosh)
SYMBIND_OTHER_TYPES(asin)
SYMBIND_OTHER_TYPES(asinh)
SYMBIND_OTHER_TYPES(atan)
SYMBIND_OTHER_TYPES(atanh)
SYMBIND_OTHER_TYPES(cbrt)
SYMBIND_OTHER_TYPES(cosh)
SYMBIND_OTHER_TYPES(erf)
SYMBIND_OTHER_TYPES(exp)
SYMBIND_OTHER_TYPES(expm1)
SYMBIND_OTHER_TYPES(log)
SYMBIND_OTHER_TYPES(log10)
SYMBIND_OTHER_TYPES(log1p)
SYMBIND_OTHER_TYPES(log2)
SYMBIND_OTHER_TYPES(sinh)
SYMBIND_OTHER_TYPES(tanh)
#undef SYMBIND_OTHER_TYPES
template <class T>
constexpr T sigmoid(T x) {
  return T(1) / (T(1) + libm::exp(-x));
}
template <class T>
constexpr T log1p_of_fraction(T x) {
  return libm::log1p(x);
}
// A rough guess by a rational function of log(1 - y²), and Newton's steps.
template <class T>
constexpr T inverse_erf(T given) {
  const double y = static_cast<double>(given);
  if (!(y >= -1 && y <= 1)) return freestanding::quiet_nan<T>();
  if (y == 1 || y == -1) return static_cast<T>(y * freestanding::infinity<double>());
  if (y == 0) return given;
  const double l = libm::log1p(-y * y), a = 2 / (freestanding::pi * 0.147) + l / 2;
  double x = libm::copysign(libm::sqrt(libm::sqrt(a * a - l / 0.147) - a), y);
  for (int i = 0; i < 3; ++i) {
    // erfc keeps the digits that 1 - erf loses.
    const double error = y > 0.5 ? (1 - y) - libm::erfc(x) : y < -0.5 ? libm::erfc(-x) - (1 + y) : libm::erf(x) - y;
    x -= error * libm::exp(x * x) * libm::sqrt(freestanding::pi) / 2;
  }
  return static_cast<T>(x);
}

}  // namespace symbind::vector_math
