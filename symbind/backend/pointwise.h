// The elementwise operators as functions of numbers, shared by all backends, and tables from operator names to them. A
// function is called with numbers of one of the types float, double, int32_t and int64_t; smaller ones are widened
// first (see Wide). Integers wrap, divide towards zero and give 0 for a division by zero; what has no meaning for
// integers is computed in float and cut off, as MXNet does it.
//
// A gradient is out_grad times the derivative, and for integers the derivative is cut off before the product.
#pragma once

#include <cmath>
#include <concepts>
#include <cstdint>
#include <type_traits>

#include "symbind/backend/convert.h"
#include "symbind/backend/vector_math.h"
#include "symbind/core/dtype.h"
#include "symbind/core/fixed_string.h"

namespace symbind::pointwise {

// The type numbers of type T are computed in.
template <class T>
using Wide = std::conditional_t<std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>, float,
                                std::conditional_t<std::is_integral_v<T> && sizeof(T) == 1, int32_t, T>>;

constexpr DType wide(DType dtype) {
  switch (dtype) {
    case DType::float16:
    case DType::bfloat16:
      return DType::float32;
    case DType::int8:
    case DType::uint8:
    case DType::boolean:
      return DType::int32;
    default:
      return dtype;
  }
}

// Calls function with std::type_identity of the C++ type behind a wide type.
template <class Function>
decltype(auto) visit_wide(DType dtype, Function&& function) {
  switch (wide(dtype)) {
    case DType::float32:
      return function(std::type_identity<float>{});
    case DType::float64:
      return function(std::type_identity<double>{});
    case DType::int32:
      return function(std::type_identity<int32_t>{});
    case DType::int64:
      return function(std::type_identity<int64_t>{});
    default:
      fail_unknown_dtype(dtype);
  }
}

// ---- Arithmetic that integers share ---------------------------------------------------------------------------------

template <class T>
constexpr T add(T a, T b) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(std::make_unsigned_t<T>(a) + std::make_unsigned_t<T>(b));
  else
    return a + b;
}
template <class T>
constexpr T subtract(T a, T b) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(std::make_unsigned_t<T>(a) - std::make_unsigned_t<T>(b));
  else
    return a - b;
}
template <class T>
constexpr T multiply(T a, T b) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(std::make_unsigned_t<T>(a) * std::make_unsigned_t<T>(b));
  else
    return a * b;
}
template <class T>
constexpr T divide(T a, T b) {
  if constexpr (std::is_integral_v<T>)
    return b == T(0) ? T(0) : b == T(-1) ? subtract(T(0), a) : static_cast<T>(a / b);
  else
    return a / b;
}
// Computes function in floating point for integers.
template <class T, class Function, class... More>
constexpr T in_floating(Function function, T x, More... more) {
  if constexpr (std::is_integral_v<T>)
    return convert<T>(function(static_cast<float>(x), static_cast<float>(more)...));
  else
    return function(x, more...);
}
template <class T>
constexpr T power(T a, T b) {
  if constexpr (std::is_integral_v<T>)
    return convert<T>(std::pow(static_cast<double>(a), static_cast<double>(b)));
  else
    return std::pow(a, b);
}

// ---- One argument ---------------------------------------------------------------------------------------------------

// clang-format off
struct Identity { template <class T> constexpr T operator()(T x) const { return x; } };
struct Negative { template <class T> constexpr T operator()(T x) const {
  if constexpr (std::is_integral_v<T>) return subtract(T(0), x);
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
  return in_floating([](auto v) { return std::sqrt(v); }, x);
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
// The scalar on the left.
template <class Function>
struct Swapped { template <class T> constexpr T operator()(T a, T b) const { return Function{}(b, a); } };

// ---- Gradients ------------------------------------------------------------------------------------------------------

// Of (dy, y).
struct ReluGrad { template <class T> constexpr T operator()(T dy, T y) const {
  if constexpr (std::is_integral_v<T>) return y > T(0) ? dy : T(0);
  else return y > T(0) ? dy : y * dy;  // y is zero or NaN
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
  if constexpr (std::is_integral_v<T>) return multiply(dy, in_floating([](auto v) { return decltype(v)(1) / v; }, x));
  else return dy / x;
} };
struct SquareGrad { template <class T> constexpr T operator()(T dy, T x) const {
  return multiply(dy, multiply(T(2), x));
} };
// Of (dy, rhs).
struct DivideLhsGrad { template <class T> constexpr T operator()(T dy, T b) const {
  if constexpr (std::is_integral_v<T>) return multiply(dy, divide(T(1), b));
  else return dy / b;
} };
// Of (dy, lhs, rhs).
struct DivideRhsGrad { template <class T> constexpr T operator()(T dy, T a, T b) const {
  if constexpr (std::is_integral_v<T>) return multiply(dy, divide(subtract(T(0), a), multiply(b, b)));
  else return dy * (-a / (b * b));
} };
struct PowerLhsGrad { template <class T> constexpr T operator()(T dy, T a, T b) const {
  return multiply(dy, in_floating([](auto v, auto e) { return e * std::pow(v, e - decltype(e)(1)); }, a, b));
} };
struct PowerRhsGrad { template <class T> constexpr T operator()(T dy, T a, T b) const {
  return multiply(dy, in_floating([](auto v, auto e) { return std::pow(v, e) * std::log(v); }, a, b));
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
  return multiply(dy, in_floating([](auto v, auto base) { return v * std::log(base); }, y, scalar));
} };
// clang-format on

// A function of more arguments with its last one given.
template <class Function, class T>
struct WithLast {
  T last;
  template <class... Arguments>
  constexpr T operator()(Arguments... arguments) const {
    return Function{}(arguments..., last);
  }
};

// ---- Tables ---------------------------------------------------------------------------------------------------------

// The function's type can be deduced from Holds<F> alone: nvcc cannot name types that have text in them.
template <class F>
struct Holds {
  using Function = F;
};
template <FixedString operator_name, class F>
struct Entry : Holds<F> {
  static constexpr auto name = operator_name;
};
template <class... Entries>
struct Table {};

// Calls visit(entry) for each entry; its name and Function are constants of its type.
template <class... Entries, class Visit>
constexpr void for_each(Table<Entries...>, Visit&& visit) {
  (visit(Entries{}), ...);
}

using UnaryTable =
    Table<Entry<"negative", Negative>, Entry<"relu", Relu>, Entry<"sigmoid", Sigmoid>, Entry<"tanh", Tanh>,
          Entry<"exp", Exp>, Entry<"log", Log>, Entry<"square", Square>, Entry<"sqrt", Sqrt>>;
using BinaryTable =
    Table<Entry<"elemwise_add", Add>, Entry<"elemwise_sub", Subtract>, Entry<"elemwise_mul", Multiply>,
          Entry<"elemwise_div", Divide>, Entry<"_power", Power>, Entry<"_equal", Equal>, Entry<"_not_equal", NotEqual>,
          Entry<"_greater", Greater>, Entry<"_greater_equal", GreaterEqual>, Entry<"_lesser", Lesser>,
          Entry<"_lesser_equal", LesserEqual>>;
using UnaryGradTable =
    Table<Entry<"_backward_relu", ReluGrad>, Entry<"_backward_sigmoid", SigmoidGrad>, Entry<"_backward_tanh", TanhGrad>,
          Entry<"_backward_sqrt", SqrtGrad>, Entry<"_backward_log", LogGrad>, Entry<"_backward_square", SquareGrad>,
          Entry<"_backward_div_lhs", DivideLhsGrad>>;
using BinaryGradTable = Table<Entry<"_backward_div_rhs", DivideRhsGrad>, Entry<"_backward_power_lhs", PowerLhsGrad>,
                              Entry<"_backward_power_rhs", PowerRhsGrad>>;
using BroadcastTable =
    Table<Entry<"broadcast_add", Add>, Entry<"broadcast_sub", Subtract>, Entry<"broadcast_mul", Multiply>,
          Entry<"broadcast_div", Divide>, Entry<"broadcast_power", Power>, Entry<"broadcast_equal", Equal>,
          Entry<"broadcast_not_equal", NotEqual>, Entry<"broadcast_greater", Greater>,
          Entry<"broadcast_greater_equal", GreaterEqual>, Entry<"broadcast_lesser", Lesser>,
          Entry<"broadcast_lesser_equal", LesserEqual>>;
// Of the array and the scalar.
using ScalarTable =
    Table<Entry<"_plus_scalar", Add>, Entry<"_minus_scalar", Subtract>, Entry<"_rminus_scalar", Swapped<Subtract>>,
          Entry<"_mul_scalar", Multiply>, Entry<"_div_scalar", Divide>, Entry<"_rdiv_scalar", Swapped<Divide>>,
          Entry<"_power_scalar", Power>, Entry<"_rpower_scalar", Swapped<Power>>, Entry<"_equal_scalar", Equal>,
          Entry<"_not_equal_scalar", NotEqual>, Entry<"_greater_scalar", Greater>,
          Entry<"_greater_equal_scalar", GreaterEqual>, Entry<"_lesser_scalar", Lesser>,
          Entry<"_lesser_equal_scalar", LesserEqual>>;
// Of two arrays and the scalar.
using ScalarGradTable =
    Table<Entry<"_backward_rdiv_scalar", ReverseDivideScalarGrad>, Entry<"_backward_power_scalar", PowerScalarGrad>,
          Entry<"_backward_rpower_scalar", ReversePowerScalarGrad>>;

}  // namespace symbind::pointwise
