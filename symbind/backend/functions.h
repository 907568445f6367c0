// The elementwise operators as functions of numbers, the only source of them for all devices: compiled into the loops
// of a CPU and the kernels of a GPU, and part of the text of programs that are compiled when a plan is built; so it
// includes no standard headers (see freestanding.h). function_tables.h says which operator is which function.
//
// A function is called with numbers of one of the types float, double, int32_t and int64_t; smaller ones are widened
// first (see wide.h). Its last arguments may be parameters of the operator, as numbers of the same type. Integers wrap,
// divide towards zero and give 0 for a division by zero; their powers are exact; functions undefined for integers are
// computed in floating point and truncated, as in MXNet, with the same result on every device.
//
// A gradient is out_grad times the derivative, and for integers the derivative is truncated before the product.
#pragma once

#include "symbind/backend/freestanding.h"
#include "symbind/backend/vector_math.h"

namespace symbind::functions {

using freestanding::is_integral;
using freestanding::unsigned_of;

// ---- Arithmetic that integers share ---------------------------------------------------------------------------------

// A floating value as an integer, by truncation. One that does not fit, and NaN, become the least int32 (int64 for
// int64), of which smaller types keep the lowest byte: as on x86, which MXNet's users expect.
template <class To, class From>
constexpr To truncate(From value) {
  using Whole = freestanding::conditional<sizeof(To) == 8, int64_t, int32_t>;
  constexpr auto least = static_cast<Whole>(unsigned_of<Whole>(1) << (sizeof(Whole) * 8 - 1));
  constexpr auto low = static_cast<From>(least);
  const bool fits = value > low - From(1) && value < -low;
  return static_cast<To>(fits ? static_cast<Whole>(value) : least);
}

// A number of one of the types that functions are called with, from an element of any type.
template <class To, class From>
constexpr To number(From value) {
  if constexpr (is_integral<To> && !is_integral<From>)
    return truncate<To>(value);
  else
    return static_cast<To>(value);
}

template <class T>
constexpr T add(T a, T b) {
  if constexpr (is_integral<T>)
    return static_cast<T>(unsigned_of<T>(a) + unsigned_of<T>(b));
  else
    return a + b;
}
template <class T>
constexpr T subtract(T a, T b) {
  if constexpr (is_integral<T>)
    return static_cast<T>(unsigned_of<T>(a) - unsigned_of<T>(b));
  else
    return a - b;
}
template <class T>
constexpr T multiply(T a, T b) {
  if constexpr (is_integral<T>)
    return static_cast<T>(unsigned_of<T>(a) * unsigned_of<T>(b));
  else
    return a * b;
}
template <class T>
constexpr T divide(T a, T b) {
  if constexpr (is_integral<T>)
    return b == T(0) ? T(0) : b == T(-1) ? subtract(T(0), a) : static_cast<T>(a / b);
  else
    return a / b;
}
// The last digits of functions of <math.h> differ between devices, by up to ten units: a value that close to a whole
// number is that number, so that truncation gives the same everywhere.
constexpr double settled(double value) {
  const double whole = libm::round(value);
  return libm::fabs(value - whole) <= libm::fabs(value) * 0x1p-48 ? whole : value;
}
// Computes function in double for integers.
template <class T, class Function, class... More>
constexpr T in_floating(Function function, T x, More... more) {
  if constexpr (is_integral<T>)
    return truncate<T>(settled(function(static_cast<double>(x), static_cast<double>(more)...)));
  else
    return function(x, more...);
}
// Computes function in float for integers, as MXNet does for a few: of operations alone that every device rounds alike.
template <class T, class Function, class... More>
constexpr T in_float(Function function, T x, More... more) {
  if constexpr (is_integral<T>)
    return truncate<T>(function(static_cast<float>(x), static_cast<float>(more)...));
  else
    return function(x, more...);
}

// The power of integers, as a double: its nearest one below 2^64, and beyond, by pow().
template <class T>
constexpr double whole_power(T a, T b) {
  uint64_t result = 1;
  if (b >= T(0)) {
    uint64_t factor = a < T(0) ? uint64_t(0) - static_cast<uint64_t>(a) : static_cast<uint64_t>(a);
    const uint64_t most = ~uint64_t(0);
    bool fits = true;
    for (auto left = static_cast<uint64_t>(b); left != 0 && fits; left >>= 1) {
      if (left & 1u) {
        fits = factor == 0 || result <= most / factor;
        result *= factor;
      }
      if (left > 1 && factor > 0xffffffffu)
        fits = false;
      else
        factor *= factor;
    }
    const double magnitude = static_cast<double>(result);
    if (fits) return a < T(0) && b % 2 != 0 ? -magnitude : magnitude;
  }
  return libm::pow(static_cast<double>(a), static_cast<double>(b));
}
template <class T>
constexpr T power(T a, T b) {
  if constexpr (is_integral<T>)
    return truncate<T>(whole_power(a, b));
  else
    return libm::pow(a, b);
}
// In float for integers.
template <class T>
constexpr float float_hypot(T a, T b) {
  return static_cast<float>(
      libm::hypot(static_cast<double>(static_cast<float>(a)), static_cast<double>(static_cast<float>(b))));
}

// ---- Functions of floating numbers that <math.h> lacks --------------------------------------------------------------

// The derivative of log gamma: by recurrence to large arguments, where the asymptotic series holds.
template <class T>
constexpr T digamma(T given) {
  double x = static_cast<double>(given), result = 0;
  if (x == libm::floor(x) && x <= 0) return freestanding::infinity<T>();
  if (x < 0) {  // reflection
    result = -freestanding::pi / libm::tan(freestanding::pi * x);
    x = 1 - x;
  }
  for (; x < 10; x += 1) result -= 1 / x;
  const double z = 1 / (x * x);
  result += libm::log(x) - 0.5 / x -
            z * (1. / 12 - z * (1. / 120 - z * (1. / 252 - z * (1. / 240 - z * (1. / 132 - z * 691. / 32760)))));
  return static_cast<T>(result);
}

// ---- From functions of floating numbers to functions of any ---------------------------------------------------------

template <class Function>
struct InFloating {
  template <class T>
  constexpr T operator()(T x) const {
    return in_floating([](auto v) { return Function{}(v); }, x);
  }
};
// dy times a function of the other number, which for integers is truncated first.
template <class Function>
struct TimesFunction {
  template <class T>
  constexpr T operator()(T dy, T x) const {
    return multiply(dy, in_floating([](auto v) { return Function{}(v); }, x));
  }
};
// Integers are returned unchanged.
template <class Function>
struct Rounding {
  template <class T>
  constexpr T operator()(T x) const {
    if constexpr (is_integral<T>)
      return x;
    else
      return Function{}(x);
  }
};

// clang-format off
namespace floating {
struct Round { template <class T> constexpr T operator()(T x) const { return libm::round(x); } };
struct Rint { template <class T> constexpr T operator()(T x) const {  // halves are rounded down
  const T below = libm::floor(x), above = libm::ceil(x);
  return x - below <= above - x ? below : above == above && below == below ? above : x;
} };
struct Ceil { template <class T> constexpr T operator()(T x) const { return libm::ceil(x); } };
struct Floor { template <class T> constexpr T operator()(T x) const { return libm::floor(x); } };
struct Trunc { template <class T> constexpr T operator()(T x) const { return libm::trunc(x); } };
struct Rsqrt { template <class T> constexpr T operator()(T x) const { return 1 / libm::sqrt(x); } };
struct Cbrt { template <class T> constexpr T operator()(T x) const { return vector_math::cbrt(x); } };
struct Rcbrt { template <class T> constexpr T operator()(T x) const { return 1 / vector_math::cbrt(x); } };
struct Log2 { template <class T> constexpr T operator()(T x) const { return vector_math::log2(x); } };
struct Log10 { template <class T> constexpr T operator()(T x) const { return vector_math::log10(x); } };
struct Log1p { template <class T> constexpr T operator()(T x) const { return vector_math::log1p(x); } };
struct Expm1 { template <class T> constexpr T operator()(T x) const { return vector_math::expm1(x); } };
struct Sin { template <class T> constexpr T operator()(T x) const { return libm::sin(x); } };
struct Cos { template <class T> constexpr T operator()(T x) const { return libm::cos(x); } };
struct Tan { template <class T> constexpr T operator()(T x) const { return libm::tan(x); } };
struct Arcsin { template <class T> constexpr T operator()(T x) const { return vector_math::asin(x); } };
struct Arccos { template <class T> constexpr T operator()(T x) const { return vector_math::acos(x); } };
struct Arctan { template <class T> constexpr T operator()(T x) const { return vector_math::atan(x); } };
struct Sinh { template <class T> constexpr T operator()(T x) const { return vector_math::sinh(x); } };
struct Cosh { template <class T> constexpr T operator()(T x) const { return vector_math::cosh(x); } };
struct Arcsinh { template <class T> constexpr T operator()(T x) const { return vector_math::asinh(x); } };
struct Arccosh { template <class T> constexpr T operator()(T x) const { return vector_math::acosh(x); } };
struct Arctanh { template <class T> constexpr T operator()(T x) const { return vector_math::atanh(x); } };
struct Erf { template <class T> constexpr T operator()(T x) const { return vector_math::erf(x); } };
struct Erfinv { template <class T> constexpr T operator()(T x) const { return vector_math::inverse_erf(x); } };
struct Gamma { template <class T> constexpr T operator()(T x) const { return libm::tgamma(x); } };
struct Gammaln { template <class T> constexpr T operator()(T x) const { return libm::lgamma(x); } };
struct Reciprocal { template <class T> constexpr T operator()(T x) const { return 1 / x; } };

// Derivatives, of the input.
struct RsqrtSlope { template <class T> constexpr T operator()(T x) const { return T(-0.5) / (x * libm::sqrt(x)); } };
struct CbrtSlope { template <class T> constexpr T operator()(T x) const {
  const T root = vector_math::cbrt(x);
  return 1 / (3 * root * root);
} };
struct RcbrtSlope { template <class T> constexpr T operator()(T x) const { return T(-1) / (3 * x * vector_math::cbrt(x)); } };
struct Log2Slope { template <class T> constexpr T operator()(T x) const { return 1 / (x * T(freestanding::ln2)); } };
struct Log10Slope { template <class T> constexpr T operator()(T x) const { return 1 / (x * T(freestanding::ln10)); } };
struct Log1pSlope { template <class T> constexpr T operator()(T x) const { return 1 / (1 + x); } };
struct Expm1Slope { template <class T> constexpr T operator()(T x) const { return vector_math::exp(x); } };
struct CosSlope { template <class T> constexpr T operator()(T x) const { return -libm::sin(x); } };
struct TanSlope { template <class T> constexpr T operator()(T x) const {
  const T y = libm::tan(x);
  return 1 + y * y;
} };
struct ArcsinSlope { template <class T> constexpr T operator()(T x) const { return 1 / libm::sqrt(1 - x * x); } };
struct ArccosSlope { template <class T> constexpr T operator()(T x) const { return -1 / libm::sqrt(1 - x * x); } };
struct ArctanSlope { template <class T> constexpr T operator()(T x) const { return 1 / (x * x + 1); } };
struct ArcsinhSlope { template <class T> constexpr T operator()(T x) const { return 1 / libm::sqrt(x * x + 1); } };
struct ArccoshSlope { template <class T> constexpr T operator()(T x) const { return 1 / libm::sqrt(x * x - 1); } };
struct ArctanhSlope { template <class T> constexpr T operator()(T x) const { return 1 / (1 - x * x); } };
struct DegreesSlope { template <class T> constexpr T operator()(T) const { return T(180 / freestanding::pi); } };
struct RadiansSlope { template <class T> constexpr T operator()(T) const { return T(freestanding::pi / 180); } };
struct ErfSlope { template <class T> constexpr T operator()(T x) const {
  return T(2 * freestanding::inv_sqrtpi) * vector_math::exp(-x * x);
} };
struct ErfinvSlope { template <class T> constexpr T operator()(T x) const {
  const T y = vector_math::inverse_erf(x);
  return T(0.5 / freestanding::inv_sqrtpi) * vector_math::exp(y * y);
} };
struct GammaSlope { template <class T> constexpr T operator()(T x) const { return libm::tgamma(x) * digamma(x); } };
struct GammalnSlope { template <class T> constexpr T operator()(T x) const { return digamma(x); } };
struct ReciprocalSlope { template <class T> constexpr T operator()(T x) const { return T(-1) / (x * x); } };
struct SoftsignSlope { template <class T> constexpr T operator()(T x) const {
  const T below = 1 + libm::fabs(x);
  return 1 / (below * below);
} };
}  // namespace floating

// ---- One argument ---------------------------------------------------------------------------------------------------

struct Identity { template <class T> constexpr T operator()(T x) const { return x; } };
struct Negative { template <class T> constexpr T operator()(T x) const {
  if constexpr (is_integral<T>) return subtract(T(0), x);
  else return -x;
} };
struct Relu { template <class T> constexpr T operator()(T x) const { return x < T(0) ? T(0) : x; } };
struct Sigmoid { template <class T> constexpr T operator()(T x) const {
  return in_floating([](auto v) { return vector_math::sigmoid(v); }, x);
} };
struct Tanh { template <class T> constexpr T operator()(T x) const {
  return in_floating([](auto v) { return vector_math::tanh(v); }, x);
} };
struct Exp { template <class T> constexpr T operator()(T x) const {
  return in_floating([](auto v) { return vector_math::exp(v); }, x);
} };
struct Log { template <class T> constexpr T operator()(T x) const {
  return in_floating([](auto v) { return vector_math::log(v); }, x);
} };
struct Square { template <class T> constexpr T operator()(T x) const { return multiply(x, x); } };
struct Sqrt { template <class T> constexpr T operator()(T x) const {
  return in_floating([](auto v) { return libm::sqrt(v); }, x);
} };
struct Sign { template <class T> constexpr T operator()(T x) const { return x > T(0) ? T(1) : x < T(0) ? T(-1) : T(0); } };
struct Abs { template <class T> constexpr T operator()(T x) const {
  if constexpr (is_integral<T>) return x < T(0) ? subtract(T(0), x) : x;
  else return libm::fabs(x);
} };
struct AbsGrad { template <class T> constexpr T operator()(T dy, T x) const { return multiply(dy, Sign{}(x)); } };
struct LogicalNot { template <class T> constexpr T operator()(T x) const { return x == T(0) ? T(1) : T(0); } };
// log(1 + e^x), without overflow for large x, and without losing e^x in 1 + e^x for small x. Above 20 it is x, as in
// MXNet.
struct SoftRelu { template <class T> constexpr T operator()(T x) const {
  const T tail = vector_math::log1p_of_fraction(vector_math::exp(x > T(0) ? -x : x));
  return x > T(20) ? x : x > T(0) ? x + tail : tail;
} };
struct SoftSign { template <class T> constexpr T operator()(T x) const { return x / (T(1) + (x < T(0) ? -x : x)); } };
// Identity for positive x; slope·x below.
struct Leaky { template <class T> constexpr T operator()(T x, T slope) const { return x > T(0) ? x : slope * x; } };
// Below zero, slope·(exp(x) - 1).
struct Elu { template <class T> constexpr T operator()(T x, T slope) const {
  return x > T(0) ? x : slope * vector_math::expm1(x);
} };
inline constexpr double selu_scale = 1.0507009873554805, selu_slope = 1.6732632423543772;
struct Selu { template <class T> constexpr T operator()(T x) const { return T(selu_scale) * Elu{}(x, T(selu_slope)); } };
// x times the probability that a normal number is below it.
struct Gelu { template <class T> constexpr T operator()(T x) const {
  return T(0.5) * x * (1 + vector_math::erf(x * T(freestanding::sqrt2 / 2)));
} };
struct Degrees { template <class T> constexpr T operator()(T x) const {
  return in_float([](auto v) { return v * (decltype(v)(180) / decltype(v)(freestanding::pi)); }, x);
} };
struct Radians { template <class T> constexpr T operator()(T x) const {
  return in_float([](auto v) { return v * (decltype(v)(freestanding::pi) / decltype(v)(180)); }, x);
} };
struct Clip { template <class T> constexpr T operator()(T x, T low, T high) const {
  return x > high ? high : x < low ? low : x;
} };
struct HardSigmoid { template <class T> constexpr T operator()(T x, T alpha, T beta) const {
  const T y = alpha * x + beta;
  return y < T(0) ? T(0) : y > T(1) ? T(1) : y;
} };
// Quadratic between -1/σ² and 1/σ², linear beyond. The scalar is σ.
struct SmoothL1 { template <class T> constexpr T operator()(T x, T sigma) const {
  return in_float([](auto v, auto s) {
    const auto square = s * s;
    if (v > 1 / square) return v - decltype(v)(0.5) / square;
    if (v < -1 / square) return -v - decltype(v)(0.5) / square;
    return decltype(v)(0.5) * v * v * square;
  }, x, sigma);
} };

// ---- Two arguments --------------------------------------------------------------------------------------------------

struct Add { template <class T> constexpr T operator()(T a, T b) const { return add(a, b); } };
struct Subtract { template <class T> constexpr T operator()(T a, T b) const { return subtract(a, b); } };
struct Multiply { template <class T> constexpr T operator()(T a, T b) const { return multiply(a, b); } };
struct Divide { template <class T> constexpr T operator()(T a, T b) const { return divide(a, b); } };
struct Power { template <class T> constexpr T operator()(T a, T b) const { return power(a, b); } };
struct Equal { template <class T> constexpr T operator()(T a, T b) const { return a == b ? T(1) : T(0); } };
struct NotEqual { template <class T> constexpr T operator()(T a, T b) const { return a != b ? T(1) : T(0); } };
struct Greater { template <class T> constexpr T operator()(T a, T b) const { return a > b ? T(1) : T(0); } };
struct GreaterEqual { template <class T> constexpr T operator()(T a, T b) const { return a >= b ? T(1) : T(0); } };
struct Lesser { template <class T> constexpr T operator()(T a, T b) const { return a < b ? T(1) : T(0); } };
struct LesserEqual { template <class T> constexpr T operator()(T a, T b) const { return a <= b ? T(1) : T(0); } };
// The function with its arguments swapped: the scalar is on the left.
template <class Function>
struct Swapped { template <class T> constexpr T operator()(T a, T b) const { return Function{}(b, a); } };
struct Maximum { template <class T> constexpr T operator()(T a, T b) const { return a > b || a != a ? a : b; } };
struct Minimum { template <class T> constexpr T operator()(T a, T b) const { return a < b || a != a ? a : b; } };
struct Hypot { template <class T> constexpr T operator()(T a, T b) const {
  if constexpr (is_integral<T>) return truncate<T>(float_hypot(a, b));
  else return libm::hypot(a, b);
} };
// The remainder of a division that rounds down: it has the divisor's sign, and is zero for a divisor of zero.
struct Modulo { template <class T> constexpr T operator()(T a, T b) const {
  if (b == T(0)) return T(0);
  if constexpr (is_integral<T>) {
    if (b == T(-1)) return T(0);
    const T rest = static_cast<T>(a % b);
    return rest != T(0) && (rest < T(0)) != (b < T(0)) ? static_cast<T>(rest + b) : rest;
  } else {
    const T rest = libm::fmod(a, b);
    return rest != T(0) && (rest < T(0)) != (b < T(0)) ? rest + b : rest;
  }
} };
struct LogicalAnd { template <class T> constexpr T operator()(T a, T b) const { return a != T(0) && b != T(0) ? T(1) : T(0); } };
struct LogicalOr { template <class T> constexpr T operator()(T a, T b) const { return a != T(0) || b != T(0) ? T(1) : T(0); } };
struct LogicalXor { template <class T> constexpr T operator()(T a, T b) const { return (a != T(0)) != (b != T(0)) ? T(1) : T(0); } };

// ---- Gradients ------------------------------------------------------------------------------------------------------

// Of (dy, y).
struct ReluGrad { template <class T> constexpr T operator()(T dy, T y) const {
  if constexpr (is_integral<T>) return y > T(0) ? dy : T(0);
  else return y > T(0) ? dy : y < T(0) ? T(0) : y * dy;  // NaN stays; a program may have written y below zero
} };
struct SigmoidGrad { template <class T> constexpr T operator()(T dy, T y) const {
  return multiply(dy, multiply(y, subtract(T(1), y)));
} };
struct TanhGrad { template <class T> constexpr T operator()(T dy, T y) const {
  return multiply(dy, subtract(T(1), multiply(y, y)));
} };
struct SqrtGrad { template <class T> constexpr T operator()(T dy, T y) const {
  return multiply(dy, in_floating([](auto v) { return decltype(v)(0.5) / v; }, y));
} };
// Of (dy, x).
struct LogGrad { template <class T> constexpr T operator()(T dy, T x) const {
  if constexpr (is_integral<T>) return multiply(dy, in_floating([](auto v) { return decltype(v)(1) / v; }, x));
  else return dy / x;
} };
struct SquareGrad { template <class T> constexpr T operator()(T dy, T x) const {
  return multiply(dy, multiply(T(2), x));
} };
// Of (dy, rhs).
struct DivideLhsGrad { template <class T> constexpr T operator()(T dy, T b) const {
  if constexpr (is_integral<T>) return multiply(dy, divide(T(1), b));
  else return dy / b;
} };
// Of (dy, lhs, rhs).
struct DivideRhsGrad { template <class T> constexpr T operator()(T dy, T a, T b) const {
  if constexpr (is_integral<T>) return multiply(dy, divide(subtract(T(0), a), multiply(b, b)));
  else return dy * (-a / (b * b));
} };
struct PowerLhsGrad { template <class T> constexpr T operator()(T dy, T a, T b) const {
  if constexpr (is_integral<T>) {
    const double slope = static_cast<double>(b) * whole_power(a, subtract(b, T(1)));
    return multiply(dy, truncate<T>(static_cast<float>(slope)));
  } else {
    return dy * (b * libm::pow(a, b - T(1)));
  }
} };
struct PowerRhsGrad { template <class T> constexpr T operator()(T dy, T a, T b) const {
  if constexpr (is_integral<T>)
    return multiply(dy, truncate<T>(settled(whole_power(a, b) * libm::log(static_cast<double>(a)))));
  else
    return dy * (libm::pow(a, b) * vector_math::log(a));
} };
// Of (dy, x) and the scalar.
struct ReverseDivideScalarGrad { template <class T> constexpr T operator()(T dy, T x, T scalar) const {
  return DivideRhsGrad{}(dy, scalar, x);
} };
struct PowerScalarGrad { template <class T> constexpr T operator()(T dy, T x, T scalar) const {
  return PowerLhsGrad{}(dy, x, scalar);
} };
// Of (dy, y) and the scalar.
struct ReversePowerScalarGrad { template <class T> constexpr T operator()(T dy, T y, T scalar) const {
  return multiply(dy, in_floating([](auto v, auto base) { return v * vector_math::log(base); }, y, scalar));
} };
// Of (dy, x) and parameters.
struct LeakyGrad { template <class T> constexpr T operator()(T dy, T x, T slope) const {
  return x > T(0) ? dy : slope * dy;
} };
struct EluGrad { template <class T> constexpr T operator()(T dy, T x, T slope) const {
  return dy * (x > T(0) ? T(1) : slope * vector_math::exp(x));
} };
struct SeluGrad { template <class T> constexpr T operator()(T dy, T x) const {
  return dy * T(selu_scale) * (x > T(0) ? T(1) : T(selu_slope) * vector_math::exp(x));
} };
struct GeluGrad { template <class T> constexpr T operator()(T dy, T x) const {
  const T below = T(0.5) * (1 + vector_math::erf(x * T(freestanding::sqrt2 / 2)));
  const T density = T(freestanding::inv_sqrtpi * freestanding::sqrt2 / 2) * vector_math::exp(T(-0.5) * x * x);
  return dy * (below + x * density);
} };
// Of (dy, x, mask).
struct RreluGrad { template <class T> constexpr T operator()(T dy, T x, T mask) const {
  return x > T(0) ? dy : multiply(dy, mask);
} };
struct ClipGrad { template <class T> constexpr T operator()(T dy, T x, T low, T high) const {
  return x > high || x < low ? T(0) : dy;
} };
struct HardSigmoidGrad { template <class T> constexpr T operator()(T dy, T x, T alpha, T beta) const {
  const T y = alpha * x + beta;
  return y > T(0) && y < T(1) ? dy * alpha : T(0);
} };
struct SmoothL1Grad { template <class T> constexpr T operator()(T dy, T x, T sigma) const {
  return multiply(dy, in_float([](auto v, auto s) {
    const auto square = s * s;
    if (v > 1 / square) return decltype(v)(1);
    if (v < -1 / square) return decltype(v)(-1);
    return v * square;
  }, x, sigma));
} };
// Of (dy, y): the slope is 1 - e^-y.
struct SoftReluGrad { template <class T> constexpr T operator()(T dy, T y) const { return dy * -vector_math::expm1(-y); } };
// Of (dy, x).
struct SoftSignGrad { template <class T> constexpr T operator()(T dy, T x) const {
  const T below = T(1) + (x < T(0) ? -x : x);
  return dy / (below * below);
} };
// Gradients of (dy, lhs, rhs).
struct MaximumLhsGrad { template <class T> constexpr T operator()(T dy, T a, T b) const { return a >= b ? dy : T(0); } };
struct MaximumRhsGrad { template <class T> constexpr T operator()(T dy, T a, T b) const { return a < b ? dy : T(0); } };
struct MinimumLhsGrad { template <class T> constexpr T operator()(T dy, T a, T b) const { return a <= b ? dy : T(0); } };
struct MinimumRhsGrad { template <class T> constexpr T operator()(T dy, T a, T b) const { return a > b ? dy : T(0); } };
struct HypotLhsGrad { template <class T> constexpr T operator()(T dy, T a, T b) const {
  if constexpr (is_integral<T>) return multiply(dy, truncate<T>(static_cast<float>(a) / float_hypot(a, b)));
  else return dy * (a / libm::hypot(a, b));
} };
struct HypotRhsGrad { template <class T> constexpr T operator()(T dy, T a, T b) const { return HypotLhsGrad{}(dy, b, a); } };
// Integer steps have derivative zero.
struct ModuloLhsGrad { template <class T> constexpr T operator()(T dy, T, T) const {
  if constexpr (is_integral<T>) return T(0);
  else return dy;
} };
struct ModuloRhsGrad { template <class T> constexpr T operator()(T dy, T a, T b) const {
  if constexpr (is_integral<T>) return T(0);
  else return dy * -libm::floor(a / b);
} };
struct ReverseModuloGrad { template <class T> constexpr T operator()(T dy, T x, T scalar) const {
  return ModuloRhsGrad{}(dy, scalar, x);
} };
// clang-format on

}  // namespace symbind::functions
