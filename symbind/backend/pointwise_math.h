// More elementwise functions in the manner of pointwise.h: the functions of mathematics, rounding, and choices between
// two numbers.
#pragma once

#include <limits>
#include <numbers>

#include "symbind/backend/pointwise.h"

namespace symbind::pointwise {

// ---- Functions of floating numbers that <cmath> lacks ---------------------------------------------------------------

// The derivative of log gamma: by recurrence to large arguments, where the asymptotic series holds.
template <class T>
T digamma(T given) {
  double x = static_cast<double>(given), result = 0;
  if (x == std::floor(x) && x <= 0) return std::numeric_limits<T>::infinity();
  if (x < 0) {  // reflection
    result = -std::numbers::pi / std::tan(std::numbers::pi * x);
    x = 1 - x;
  }
  for (; x < 10; x += 1) result -= 1 / x;
  const double z = 1 / (x * x);
  result += std::log(x) - 0.5 / x -
            z * (1. / 12 - z * (1. / 120 - z * (1. / 252 - z * (1. / 240 - z * (1. / 132 - z * 691. / 32760)))));
  return static_cast<T>(result);
}

// The number whose error function is y: a rough guess by a rational function of log(1 - y²), and Newton's steps.
template <class T>
T inverse_erf(T given) {
  const double y = static_cast<double>(given);
  if (!(y >= -1 && y <= 1)) return std::numeric_limits<T>::quiet_NaN();
  if (y == 1 || y == -1) return static_cast<T>(y * std::numeric_limits<double>::infinity());
  if (y == 0) return given;
  const double l = std::log1p(-y * y), a = 2 / (std::numbers::pi * 0.147) + l / 2;
  double x = std::copysign(std::sqrt(std::sqrt(a * a - l / 0.147) - a), y);
  for (int i = 0; i < 3; ++i) {
    // erfc keeps the digits that 1 - erf loses.
    const double error = y > 0.5 ? (1 - y) - std::erfc(x) : y < -0.5 ? std::erfc(-x) - (1 + y) : std::erf(x) - y;
    x -= error * std::exp(x * x) * std::sqrt(std::numbers::pi) / 2;
  }
  return static_cast<T>(x);
}

// ---- From functions of floating numbers to functions of any ---------------------------------------------------------

template <class Function>
struct InFloating {
  template <class T>
  constexpr T operator()(T x) const {
    return in_floating([](auto v) { return Function{}(v); }, x);
  }
};
// dy times a function of the other number, which for whole numbers is cut off first.
template <class Function>
struct TimesFunction {
  template <class T>
  constexpr T operator()(T dy, T x) const {
    return multiply(dy, in_floating([](auto v) { return Function{}(v); }, x));
  }
};
// Whole numbers are as round as can be.
template <class Function>
struct Rounding {
  template <class T>
  constexpr T operator()(T x) const {
    if constexpr (std::is_integral_v<T>)
      return x;
    else
      return Function{}(x);
  }
};

// clang-format off
namespace floating {
struct Round { template <class T> T operator()(T x) const { return std::round(x); } };
struct Rint { template <class T> T operator()(T x) const {  // halves go down
  const T below = std::floor(x), above = std::ceil(x);
  return x - below <= above - x ? below : above == above && below == below ? above : x;
} };
struct Ceil { template <class T> T operator()(T x) const { return std::ceil(x); } };
struct Floor { template <class T> T operator()(T x) const { return std::floor(x); } };
struct Trunc { template <class T> T operator()(T x) const { return std::trunc(x); } };
struct Rsqrt { template <class T> T operator()(T x) const { return 1 / std::sqrt(x); } };
struct Cbrt { template <class T> T operator()(T x) const { return std::cbrt(x); } };
struct Rcbrt { template <class T> T operator()(T x) const { return 1 / std::cbrt(x); } };
struct Log2 { template <class T> T operator()(T x) const { return std::log2(x); } };
struct Log10 { template <class T> T operator()(T x) const { return std::log10(x); } };
struct Log1p { template <class T> T operator()(T x) const { return std::log1p(x); } };
struct Expm1 { template <class T> T operator()(T x) const { return std::expm1(x); } };
struct Sin { template <class T> T operator()(T x) const { return std::sin(x); } };
struct Cos { template <class T> T operator()(T x) const { return std::cos(x); } };
struct Tan { template <class T> T operator()(T x) const { return std::tan(x); } };
struct Arcsin { template <class T> T operator()(T x) const { return std::asin(x); } };
struct Arccos { template <class T> T operator()(T x) const { return std::acos(x); } };
struct Arctan { template <class T> T operator()(T x) const { return std::atan(x); } };
struct Sinh { template <class T> T operator()(T x) const { return std::sinh(x); } };
struct Cosh { template <class T> T operator()(T x) const { return std::cosh(x); } };
struct Arcsinh { template <class T> T operator()(T x) const { return std::asinh(x); } };
struct Arccosh { template <class T> T operator()(T x) const { return std::acosh(x); } };
struct Arctanh { template <class T> T operator()(T x) const { return std::atanh(x); } };
struct Degrees { template <class T> T operator()(T x) const { return x * T(180 / std::numbers::pi); } };
struct Radians { template <class T> T operator()(T x) const { return x * T(std::numbers::pi / 180); } };
struct Erf { template <class T> T operator()(T x) const { return std::erf(x); } };
struct Erfinv { template <class T> T operator()(T x) const { return inverse_erf(x); } };
struct Gamma { template <class T> T operator()(T x) const { return std::tgamma(x); } };
struct Gammaln { template <class T> T operator()(T x) const { return std::lgamma(x); } };
struct Reciprocal { template <class T> T operator()(T x) const { return 1 / x; } };
struct Softsign { template <class T> T operator()(T x) const { return x / (1 + std::abs(x)); } };

// Derivatives, of the input.
struct RsqrtSlope { template <class T> T operator()(T x) const { return T(-0.5) / (x * std::sqrt(x)); } };
struct CbrtSlope { template <class T> T operator()(T x) const {
  const T root = std::cbrt(x);
  return 1 / (3 * root * root);
} };
struct RcbrtSlope { template <class T> T operator()(T x) const { return T(-1) / (3 * x * std::cbrt(x)); } };
struct Log2Slope { template <class T> T operator()(T x) const { return 1 / (x * T(std::numbers::ln2)); } };
struct Log10Slope { template <class T> T operator()(T x) const { return 1 / (x * T(std::numbers::ln10)); } };
struct Log1pSlope { template <class T> T operator()(T x) const { return 1 / (1 + x); } };
struct Expm1Slope { template <class T> T operator()(T x) const { return std::exp(x); } };
struct CosSlope { template <class T> T operator()(T x) const { return -std::sin(x); } };
struct TanSlope { template <class T> T operator()(T x) const {
  const T y = std::tan(x);
  return 1 + y * y;
} };
struct ArcsinSlope { template <class T> T operator()(T x) const { return 1 / std::sqrt(1 - x * x); } };
struct ArccosSlope { template <class T> T operator()(T x) const { return -1 / std::sqrt(1 - x * x); } };
struct ArctanSlope { template <class T> T operator()(T x) const { return 1 / (x * x + 1); } };
struct ArcsinhSlope { template <class T> T operator()(T x) const { return 1 / std::sqrt(x * x + 1); } };
struct ArccoshSlope { template <class T> T operator()(T x) const { return 1 / std::sqrt(x * x - 1); } };
struct ArctanhSlope { template <class T> T operator()(T x) const { return 1 / (1 - x * x); } };
struct DegreesSlope { template <class T> T operator()(T) const { return T(180 / std::numbers::pi); } };
struct RadiansSlope { template <class T> T operator()(T) const { return T(std::numbers::pi / 180); } };
struct ErfSlope { template <class T> T operator()(T x) const {
  return T(2 * std::numbers::inv_sqrtpi) * std::exp(-x * x);
} };
struct ErfinvSlope { template <class T> T operator()(T x) const {
  const T y = inverse_erf(x);
  return T(0.5 / std::numbers::inv_sqrtpi) * std::exp(y * y);
} };
struct GammaSlope { template <class T> T operator()(T x) const { return std::tgamma(x) * digamma(x); } };
struct GammalnSlope { template <class T> T operator()(T x) const { return digamma(x); } };
struct ReciprocalSlope { template <class T> T operator()(T x) const { return T(-1) / (x * x); } };
struct SoftsignSlope { template <class T> T operator()(T x) const {
  const T below = 1 + std::abs(x);
  return 1 / (below * below);
} };
}  // namespace floating

// ---- One argument ---------------------------------------------------------------------------------------------------

struct Sign { template <class T> constexpr T operator()(T x) const { return x > T(0) ? T(1) : x < T(0) ? T(-1) : T(0); } };
struct Abs { template <class T> constexpr T operator()(T x) const {
  if constexpr (std::is_integral_v<T>) return x < T(0) ? subtract(T(0), x) : x;
  else return std::abs(x);
} };
struct AbsGrad { template <class T> constexpr T operator()(T dy, T x) const { return multiply(dy, Sign{}(x)); } };
struct LogicalNot { template <class T> constexpr T operator()(T x) const { return x == T(0) ? T(1) : T(0); } };

// ---- Two arguments --------------------------------------------------------------------------------------------------

struct Maximum { template <class T> constexpr T operator()(T a, T b) const { return a > b || a != a ? a : b; } };
struct Minimum { template <class T> constexpr T operator()(T a, T b) const { return a < b || a != a ? a : b; } };
struct Hypot { template <class T> constexpr T operator()(T a, T b) const {
  return in_floating([](auto x, auto y) { return std::hypot(x, y); }, a, b);
} };
// What is left of a division that rounds down: it has the divisor's sign, and by zero it is zero.
struct Modulo { template <class T> constexpr T operator()(T a, T b) const {
  if (b == T(0)) return T(0);
  if constexpr (std::is_integral_v<T>) {
    if (b == T(-1)) return T(0);
    const T rest = static_cast<T>(a % b);
    return rest != T(0) && (rest < T(0)) != (b < T(0)) ? static_cast<T>(rest + b) : rest;
  } else {
    const T rest = std::fmod(a, b);
    return rest != T(0) && (rest < T(0)) != (b < T(0)) ? rest + b : rest;
  }
} };
struct LogicalAnd { template <class T> constexpr T operator()(T a, T b) const { return a != T(0) && b != T(0) ? T(1) : T(0); } };
struct LogicalOr { template <class T> constexpr T operator()(T a, T b) const { return a != T(0) || b != T(0) ? T(1) : T(0); } };
struct LogicalXor { template <class T> constexpr T operator()(T a, T b) const { return (a != T(0)) != (b != T(0)) ? T(1) : T(0); } };

// Gradients of (dy, lhs, rhs).
struct MaximumLhsGrad { template <class T> constexpr T operator()(T dy, T a, T b) const { return a >= b ? dy : T(0); } };
struct MaximumRhsGrad { template <class T> constexpr T operator()(T dy, T a, T b) const { return a < b ? dy : T(0); } };
struct MinimumLhsGrad { template <class T> constexpr T operator()(T dy, T a, T b) const { return a <= b ? dy : T(0); } };
struct MinimumRhsGrad { template <class T> constexpr T operator()(T dy, T a, T b) const { return a > b ? dy : T(0); } };
struct HypotLhsGrad { template <class T> constexpr T operator()(T dy, T a, T b) const {
  return multiply(dy, in_floating([](auto x, auto y) { return x / std::hypot(x, y); }, a, b));
} };
struct HypotRhsGrad { template <class T> constexpr T operator()(T dy, T a, T b) const { return HypotLhsGrad{}(dy, b, a); } };
// Steps of whole numbers have no slope.
struct ModuloLhsGrad { template <class T> constexpr T operator()(T dy, T, T) const {
  if constexpr (std::is_integral_v<T>) return T(0);
  else return dy;
} };
struct ModuloRhsGrad { template <class T> constexpr T operator()(T dy, T a, T b) const {
  if constexpr (std::is_integral_v<T>) return T(0);
  else return dy * -std::floor(a / b);
} };

// ---- Functions with numbers of their own ----------------------------------------------------------------------------

template <class T>
struct Clip {
  T low, high;
  constexpr T operator()(T x) const { return x > high ? high : x < low ? low : x; }
};
template <class T>
struct ClipGrad {
  T low, high;
  constexpr T operator()(T dy, T x) const { return x > high || x < low ? T(0) : dy; }
};
template <class T>
struct HardSigmoid {
  T alpha, beta;
  constexpr T operator()(T x) const {
    const T y = alpha * x + beta;
    return y < T(0) ? T(0) : y > T(1) ? T(1) : y;
  }
};
template <class T>
struct HardSigmoidGrad {
  T alpha, beta;
  constexpr T operator()(T dy, T x) const {
    const T y = alpha * x + beta;
    return y > T(0) && y < T(1) ? dy * alpha : T(0);
  }
};
// A parabola between -1/σ² and 1/σ², straight lines beyond. The scalar is σ.
struct SmoothL1 { template <class T> constexpr T operator()(T x, T sigma) const {
  return in_floating([](auto v, auto s) {
    const auto square = s * s;
    if (v > 1 / square) return v - decltype(v)(0.5) / square;
    if (v < -1 / square) return -v - decltype(v)(0.5) / square;
    return decltype(v)(0.5) * v * v * square;
  }, x, sigma);
} };
struct SmoothL1Grad { template <class T> constexpr T operator()(T dy, T x, T sigma) const {
  return multiply(dy, in_floating([](auto v, auto s) {
    const auto square = s * s;
    if (v > 1 / square) return decltype(v)(1);
    if (v < -1 / square) return decltype(v)(-1);
    return v * square;
  }, x, sigma));
} };
// clang-format on

// ---- Tables ---------------------------------------------------------------------------------------------------------

template <FixedString name, class Function>
using FloatingEntry = Entry<name, InFloating<Function>>;
template <FixedString name, class Function>
using SlopeEntry = Entry<name, TimesFunction<Function>>;

using MathTable = Table<Entry<"abs", Abs>, Entry<"sign", Sign>, Entry<"round", Rounding<floating::Round>>,
                        Entry<"rint", Rounding<floating::Rint>>, Entry<"ceil", Rounding<floating::Ceil>>,
                        Entry<"floor", Rounding<floating::Floor>>, Entry<"fix", Rounding<floating::Trunc>>,
                        Entry<"trunc", Rounding<floating::Trunc>>, FloatingEntry<"rsqrt", floating::Rsqrt>,
                        FloatingEntry<"cbrt", floating::Cbrt>, FloatingEntry<"rcbrt", floating::Rcbrt>,
                        FloatingEntry<"log2", floating::Log2>, FloatingEntry<"log10", floating::Log10>,
                        FloatingEntry<"log1p", floating::Log1p>, FloatingEntry<"expm1", floating::Expm1>,
                        FloatingEntry<"sin", floating::Sin>, FloatingEntry<"cos", floating::Cos>,
                        FloatingEntry<"tan", floating::Tan>, FloatingEntry<"arcsin", floating::Arcsin>,
                        FloatingEntry<"arccos", floating::Arccos>, FloatingEntry<"arctan", floating::Arctan>,
                        FloatingEntry<"sinh", floating::Sinh>, FloatingEntry<"cosh", floating::Cosh>,
                        FloatingEntry<"arcsinh", floating::Arcsinh>, FloatingEntry<"arccosh", floating::Arccosh>,
                        FloatingEntry<"arctanh", floating::Arctanh>, FloatingEntry<"degrees", floating::Degrees>,
                        FloatingEntry<"radians", floating::Radians>, FloatingEntry<"erf", floating::Erf>,
                        FloatingEntry<"erfinv", floating::Erfinv>, FloatingEntry<"gamma", floating::Gamma>,
                        FloatingEntry<"gammaln", floating::Gammaln>, FloatingEntry<"reciprocal", floating::Reciprocal>,
                        FloatingEntry<"softsign", floating::Softsign>, Entry<"logical_not", LogicalNot>>;
// Of (dy, x).
using MathGradTable = Table<
    Entry<"_backward_abs", AbsGrad>, SlopeEntry<"_backward_rsqrt", floating::RsqrtSlope>,
    SlopeEntry<"_backward_cbrt", floating::CbrtSlope>, SlopeEntry<"_backward_rcbrt", floating::RcbrtSlope>,
    SlopeEntry<"_backward_log2", floating::Log2Slope>, SlopeEntry<"_backward_log10", floating::Log10Slope>,
    SlopeEntry<"_backward_log1p", floating::Log1pSlope>, SlopeEntry<"_backward_expm1", floating::Expm1Slope>,
    SlopeEntry<"_backward_sin", floating::Cos>, SlopeEntry<"_backward_cos", floating::CosSlope>,
    SlopeEntry<"_backward_tan", floating::TanSlope>, SlopeEntry<"_backward_arcsin", floating::ArcsinSlope>,
    SlopeEntry<"_backward_arccos", floating::ArccosSlope>, SlopeEntry<"_backward_arctan", floating::ArctanSlope>,
    SlopeEntry<"_backward_sinh", floating::Cosh>, SlopeEntry<"_backward_cosh", floating::Sinh>,
    SlopeEntry<"_backward_arcsinh", floating::ArcsinhSlope>, SlopeEntry<"_backward_arccosh", floating::ArccoshSlope>,
    SlopeEntry<"_backward_arctanh", floating::ArctanhSlope>, SlopeEntry<"_backward_degrees", floating::DegreesSlope>,
    SlopeEntry<"_backward_radians", floating::RadiansSlope>, SlopeEntry<"_backward_erf", floating::ErfSlope>,
    SlopeEntry<"_backward_erfinv", floating::ErfinvSlope>, SlopeEntry<"_backward_gamma", floating::GammaSlope>,
    SlopeEntry<"_backward_gammaln", floating::GammalnSlope>,
    SlopeEntry<"_backward_reciprocal", floating::ReciprocalSlope>,
    SlopeEntry<"_backward_softsign", floating::SoftsignSlope>>;

using ChoiceTable =
    Table<Entry<"_maximum", Maximum>, Entry<"_minimum", Minimum>, Entry<"_hypot", Hypot>, Entry<"_mod", Modulo>,
          Entry<"_logical_and", LogicalAnd>, Entry<"_logical_or", LogicalOr>, Entry<"_logical_xor", LogicalXor>>;
using ChoiceBroadcastTable =
    Table<Entry<"broadcast_maximum", Maximum>, Entry<"broadcast_minimum", Minimum>, Entry<"broadcast_hypot", Hypot>,
          Entry<"broadcast_mod", Modulo>, Entry<"broadcast_logical_and", LogicalAnd>,
          Entry<"broadcast_logical_or", LogicalOr>, Entry<"broadcast_logical_xor", LogicalXor>>;
using ChoiceScalarTable = Table<Entry<"_maximum_scalar", Maximum>, Entry<"_minimum_scalar", Minimum>,
                                Entry<"_hypot_scalar", Hypot>, Entry<"_mod_scalar", Modulo>,
                                Entry<"_rmod_scalar", Swapped<Modulo>>, Entry<"_logical_and_scalar", LogicalAnd>,
                                Entry<"_logical_or_scalar", LogicalOr>, Entry<"_logical_xor_scalar", LogicalXor>>;
// Of (dy, lhs, rhs); with a scalar of (dy, x) and the scalar.
using ChoiceGradTable =
    Table<Entry<"_backward_maximum_lhs", MaximumLhsGrad>, Entry<"_backward_maximum_rhs", MaximumRhsGrad>,
          Entry<"_backward_minimum_lhs", MinimumLhsGrad>, Entry<"_backward_minimum_rhs", MinimumRhsGrad>,
          Entry<"_backward_hypot_lhs", HypotLhsGrad>, Entry<"_backward_hypot_rhs", HypotRhsGrad>,
          Entry<"_backward_mod_lhs", ModuloLhsGrad>, Entry<"_backward_mod_rhs", ModuloRhsGrad>>;
struct ReverseModuloGrad {
  template <class T>
  constexpr T operator()(T dy, T x, T scalar) const {
    return ModuloRhsGrad{}(dy, scalar, x);
  }
};
using ChoiceScalarGradTable =
    Table<Entry<"_backward_maximum_scalar", MaximumLhsGrad>, Entry<"_backward_minimum_scalar", MinimumLhsGrad>,
          Entry<"_backward_hypot_scalar", HypotLhsGrad>, Entry<"_backward_mod_scalar", ModuloLhsGrad>,
          Entry<"_backward_rmod_scalar", ReverseModuloGrad>>;

}  // namespace symbind::pointwise
