// Which function of functions.h each elementwise operator is: the number of its arrays, and which of its parameters are
// the function's last arguments. The CPU's loops, the GPU's kernels and the text of programs all come from these
// tables. If an operator has several functions, depending on its parameters, the first matching entry is used.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>
#include <type_traits>
#include <utility>

#include "symbind/backend/functions.h"
#include "symbind/core/error.h"
#include "symbind/core/fixed_string.h"
#include "symbind/ops/activation.h"
#include "symbind/ops/leaky_relu.h"
#include "symbind/ops/math.h"
#include "symbind/ops/scalar.h"

namespace symbind::functions {

// ---- Entries --------------------------------------------------------------------------------------------------------

// The function's type can be deduced from Holds<F> alone: nvcc cannot name types with string template arguments.
template <class F>
struct Holds {
  using Function = F;
};

template <class P, class Member>
const Member& value_of(const void* params, Member P::*member) {
  return static_cast<const P*>(params)->*member;
}

// An operator as a function of `operand_count` arrays and of the parameters given by member pointers.
template <FixedString operator_name, class F, size_t operand_count, auto... members>
struct Entry : Holds<F> {
  static constexpr auto name = operator_name;
  static constexpr size_t arity = operand_count;
  static constexpr bool scalar_is_element = false;
  static bool holds(const void*) { return true; }
  static std::array<double, sizeof...(members)> numbers([[maybe_unused]] const void* params) {
    return {static_cast<double>(value_of(params, members))...};
  }
};

// The last argument is the parameter `scalar`, first converted to the element type of the result: for integers its
// fraction is truncated.
template <FixedString operator_name, class F, size_t operand_count>
struct ScalarEntry : Entry<operator_name, F, operand_count, &WithScalar<operator_name>::scalar> {
  static constexpr bool scalar_is_element = true;
};

// An entry for one value of a parameter.
template <auto member, int value, class E>
struct ForNumber : E {
  static bool holds(const void* params) { return value_of(params, member) == value; }
};
template <auto member, FixedString value, class E>
struct ForText : E {
  static constexpr auto text = value;
  static bool holds(const void* params) { return std::string_view(value_of(params, member)) == value.view(); }
};

template <class... Entries>
struct Table {};

// Calls visit(entry) for each entry; the properties of its operator are constants and functions of its type.
template <class... Entries, class Visit>
constexpr void for_each(Table<Entries...>, Visit&& visit) {
  (visit(Entries{}), ...);
}

// A function with its last arguments given.
template <class Function, class T, size_t count>
struct WithNumbers {
  T numbers[count];
  template <class... Arguments>
  constexpr T operator()(Arguments... arguments) const {
    static_assert(count == 1 || count == 2);
    if constexpr (count == 1)
      return Function{}(arguments..., numbers[0]);
    else
      return Function{}(arguments..., numbers[0], numbers[1]);
  }
};

// An entry's function for numbers of type T, where as_number(value) converts a parameter to T.
template <class T, class Function, size_t count, class AsNumber>
auto bound(Holds<Function>, const std::array<double, count>& numbers, AsNumber as_number) {
  if constexpr (count == 0)
    return Function{};
  else if constexpr (count == 1)
    return WithNumbers<Function, T, 1>{as_number(numbers[0])};
  else
    return WithNumbers<Function, T, 2>{as_number(numbers[0]), as_number(numbers[1])};
}

// "Swapped<Divide>": how the text of a program names a function. Some compilers write the namespaces too.
template <class F>
constexpr std::string_view name_in_source() {
  constexpr std::string_view text = __PRETTY_FUNCTION__;  // "… [with F = name; …]" or "… [F = name]"
  constexpr size_t begin = text.find("F = ") + 4;
  return text.substr(begin, text.find_first_of(";]", begin) - begin);
}

// ---- Tables ---------------------------------------------------------------------------------------------------------

using UnaryTable =
    Table<Entry<"negative", Negative, 1>, Entry<"relu", Relu, 1>, Entry<"sigmoid", Sigmoid, 1>, Entry<"tanh", Tanh, 1>,
          Entry<"exp", Exp, 1>, Entry<"log", Log, 1>, Entry<"square", Square, 1>, Entry<"sqrt", Sqrt, 1>>;
using BinaryTable =
    Table<Entry<"elemwise_add", Add, 2>, Entry<"elemwise_sub", Subtract, 2>, Entry<"elemwise_mul", Multiply, 2>,
          Entry<"elemwise_div", Divide, 2>, Entry<"_power", Power, 2>, Entry<"_equal", Equal, 2>,
          Entry<"_not_equal", NotEqual, 2>, Entry<"_greater", Greater, 2>, Entry<"_greater_equal", GreaterEqual, 2>,
          Entry<"_lesser", Lesser, 2>, Entry<"_lesser_equal", LesserEqual, 2>>;
// Of (dy, y) or (dy, x).
using UnaryGradTable = Table<Entry<"_backward_relu", ReluGrad, 2>, Entry<"_backward_sigmoid", SigmoidGrad, 2>,
                             Entry<"_backward_tanh", TanhGrad, 2>, Entry<"_backward_sqrt", SqrtGrad, 2>,
                             Entry<"_backward_log", LogGrad, 2>, Entry<"_backward_square", SquareGrad, 2>,
                             Entry<"_backward_div_lhs", DivideLhsGrad, 2>>;
// Of (dy, lhs, rhs).
using BinaryGradTable =
    Table<Entry<"_backward_div_rhs", DivideRhsGrad, 3>, Entry<"_backward_power_lhs", PowerLhsGrad, 3>,
          Entry<"_backward_power_rhs", PowerRhsGrad, 3>>;
// Of the array and the scalar. Squares are common, and far cheaper than powers.
using ScalarTable =
    Table<ScalarEntry<"_plus_scalar", Add, 1>, ScalarEntry<"_minus_scalar", Subtract, 1>,
          ScalarEntry<"_rminus_scalar", Swapped<Subtract>, 1>, ScalarEntry<"_mul_scalar", Multiply, 1>,
          ScalarEntry<"_div_scalar", Divide, 1>, ScalarEntry<"_rdiv_scalar", Swapped<Divide>, 1>,
          ForNumber<&WithScalar<"_power_scalar">::scalar, 2, Entry<"_power_scalar", Square, 1>>,
          ScalarEntry<"_power_scalar", Power, 1>, ScalarEntry<"_rpower_scalar", Swapped<Power>, 1>,
          ScalarEntry<"_equal_scalar", Equal, 1>, ScalarEntry<"_not_equal_scalar", NotEqual, 1>,
          ScalarEntry<"_greater_scalar", Greater, 1>, ScalarEntry<"_greater_equal_scalar", GreaterEqual, 1>,
          ScalarEntry<"_lesser_scalar", Lesser, 1>, ScalarEntry<"_lesser_equal_scalar", LesserEqual, 1>>;
// Of two arrays and the scalar.
using ScalarGradTable = Table<ScalarEntry<"_backward_rdiv_scalar", ReverseDivideScalarGrad, 2>,
                              ScalarEntry<"_backward_power_scalar", PowerScalarGrad, 2>,
                              ScalarEntry<"_backward_rpower_scalar", ReversePowerScalarGrad, 2>>;

// Classes, since nvcc cannot name aliases with string template arguments either.
template <FixedString act_type, class Function>
struct ActivationEntry : ForText<&Activation::act_type, act_type, Entry<"Activation", Function, 1>> {};
template <FixedString act_type, class Function>
struct ActivationGradEntry : ForText<&Activation::act_type, act_type, Entry<"_backward_Activation", Function, 2>> {};
using ActivationTable =
    Table<ActivationEntry<"relu", Relu>, ActivationEntry<"sigmoid", Sigmoid>, ActivationEntry<"tanh", Tanh>,
          ActivationEntry<"softrelu", SoftRelu>, ActivationEntry<"softsign", SoftSign>>;
// Of (dy, y); softsign of (dy, x).
using ActivationGradTable = Table<ActivationGradEntry<"relu", ReluGrad>, ActivationGradEntry<"sigmoid", SigmoidGrad>,
                                  ActivationGradEntry<"tanh", TanhGrad>, ActivationGradEntry<"softrelu", SoftReluGrad>,
                                  ActivationGradEntry<"softsign", SoftSignGrad>>;

template <FixedString act_type, class Function, auto... members>
struct LeakyEntry : ForText<&LeakyReLU::act_type, act_type, Entry<"LeakyReLU", Function, 1, members...>> {};
template <FixedString act_type, class Function, size_t arity, auto... members>
struct LeakyGradEntry
    : ForText<&LeakyReLU::act_type, act_type, Entry<"_backward_LeakyReLU", Function, arity, members...>> {};
// prelu and the forward of rrelu are more than functions of elements.
using LeakyTable = Table<LeakyEntry<"leaky", Leaky, &LeakyReLU::slope>, LeakyEntry<"elu", Elu, &LeakyReLU::slope>,
                         LeakyEntry<"selu", Selu>, LeakyEntry<"gelu", Gelu>>;
using LeakyGradTable = Table<LeakyGradEntry<"leaky", LeakyGrad, 2, &LeakyReLU::slope>,
                             LeakyGradEntry<"elu", EluGrad, 2, &LeakyReLU::slope>, LeakyGradEntry<"selu", SeluGrad, 2>,
                             LeakyGradEntry<"gelu", GeluGrad, 2>, LeakyGradEntry<"rrelu", RreluGrad, 3>>;

using MathTable =
    Table<Entry<"abs", Abs, 1>, Entry<"sign", Sign, 1>, Entry<"round", Rounding<floating::Round>, 1>,
          Entry<"rint", Rounding<floating::Rint>, 1>, Entry<"ceil", Rounding<floating::Ceil>, 1>,
          Entry<"floor", Rounding<floating::Floor>, 1>, Entry<"fix", Rounding<floating::Trunc>, 1>,
          Entry<"trunc", Rounding<floating::Trunc>, 1>, Entry<"rsqrt", InFloating<floating::Rsqrt>, 1>,
          Entry<"cbrt", InFloating<floating::Cbrt>, 1>, Entry<"rcbrt", InFloating<floating::Rcbrt>, 1>,
          Entry<"log2", InFloating<floating::Log2>, 1>, Entry<"log10", InFloating<floating::Log10>, 1>,
          Entry<"log1p", InFloating<floating::Log1p>, 1>, Entry<"expm1", InFloating<floating::Expm1>, 1>,
          Entry<"sin", InFloating<floating::Sin>, 1>, Entry<"cos", InFloating<floating::Cos>, 1>,
          Entry<"tan", InFloating<floating::Tan>, 1>, Entry<"arcsin", InFloating<floating::Arcsin>, 1>,
          Entry<"arccos", InFloating<floating::Arccos>, 1>, Entry<"arctan", InFloating<floating::Arctan>, 1>,
          Entry<"sinh", InFloating<floating::Sinh>, 1>, Entry<"cosh", InFloating<floating::Cosh>, 1>,
          Entry<"arcsinh", InFloating<floating::Arcsinh>, 1>, Entry<"arccosh", InFloating<floating::Arccosh>, 1>,
          Entry<"arctanh", InFloating<floating::Arctanh>, 1>, Entry<"degrees", Degrees, 1>,
          Entry<"radians", Radians, 1>, Entry<"erf", InFloating<floating::Erf>, 1>,
          Entry<"erfinv", InFloating<floating::Erfinv>, 1>, Entry<"gamma", InFloating<floating::Gamma>, 1>,
          Entry<"gammaln", InFloating<floating::Gammaln>, 1>, Entry<"reciprocal", InFloating<floating::Reciprocal>, 1>,
          Entry<"softsign", InFloating<SoftSign>, 1>, Entry<"logical_not", LogicalNot, 1>,
          Entry<"clip", Clip, 1, &symbind::Clip::a_min, &symbind::Clip::a_max>,
          Entry<"hard_sigmoid", HardSigmoid, 1, &symbind::HardSigmoid::alpha, &symbind::HardSigmoid::beta>,
          Entry<"smooth_l1", SmoothL1, 1, &symbind::SmoothL1::scalar>>;
// Of (dy, x).
using MathGradTable = Table<
    Entry<"_backward_abs", AbsGrad, 2>, Entry<"_backward_rsqrt", TimesFunction<floating::RsqrtSlope>, 2>,
    Entry<"_backward_cbrt", TimesFunction<floating::CbrtSlope>, 2>,
    Entry<"_backward_rcbrt", TimesFunction<floating::RcbrtSlope>, 2>,
    Entry<"_backward_log2", TimesFunction<floating::Log2Slope>, 2>,
    Entry<"_backward_log10", TimesFunction<floating::Log10Slope>, 2>,
    Entry<"_backward_log1p", TimesFunction<floating::Log1pSlope>, 2>,
    Entry<"_backward_expm1", TimesFunction<floating::Expm1Slope>, 2>,
    Entry<"_backward_sin", TimesFunction<floating::Cos>, 2>,
    Entry<"_backward_cos", TimesFunction<floating::CosSlope>, 2>,
    Entry<"_backward_tan", TimesFunction<floating::TanSlope>, 2>,
    Entry<"_backward_arcsin", TimesFunction<floating::ArcsinSlope>, 2>,
    Entry<"_backward_arccos", TimesFunction<floating::ArccosSlope>, 2>,
    Entry<"_backward_arctan", TimesFunction<floating::ArctanSlope>, 2>,
    Entry<"_backward_sinh", TimesFunction<floating::Cosh>, 2>,
    Entry<"_backward_cosh", TimesFunction<floating::Sinh>, 2>,
    Entry<"_backward_arcsinh", TimesFunction<floating::ArcsinhSlope>, 2>,
    Entry<"_backward_arccosh", TimesFunction<floating::ArccoshSlope>, 2>,
    Entry<"_backward_arctanh", TimesFunction<floating::ArctanhSlope>, 2>,
    Entry<"_backward_degrees", TimesFunction<floating::DegreesSlope>, 2>,
    Entry<"_backward_radians", TimesFunction<floating::RadiansSlope>, 2>,
    Entry<"_backward_erf", TimesFunction<floating::ErfSlope>, 2>,
    Entry<"_backward_erfinv", TimesFunction<floating::ErfinvSlope>, 2>,
    Entry<"_backward_gamma", TimesFunction<floating::GammaSlope>, 2>,
    Entry<"_backward_gammaln", TimesFunction<floating::GammalnSlope>, 2>,
    Entry<"_backward_reciprocal", TimesFunction<floating::ReciprocalSlope>, 2>,
    Entry<"_backward_softsign", TimesFunction<floating::SoftsignSlope>, 2>,
    Entry<"_backward_clip", ClipGrad, 2, &symbind::Clip::a_min, &symbind::Clip::a_max>,
    Entry<"_backward_hard_sigmoid", HardSigmoidGrad, 2, &symbind::HardSigmoid::alpha, &symbind::HardSigmoid::beta>,
    Entry<"_backward_smooth_l1", SmoothL1Grad, 2, &symbind::SmoothL1::scalar>>;

using ChoiceTable = Table<Entry<"_maximum", Maximum, 2>, Entry<"_minimum", Minimum, 2>, Entry<"_hypot", Hypot, 2>,
                          Entry<"_mod", Modulo, 2>, Entry<"_logical_and", LogicalAnd, 2>,
                          Entry<"_logical_or", LogicalOr, 2>, Entry<"_logical_xor", LogicalXor, 2>>;
using ChoiceScalarTable =
    Table<ScalarEntry<"_maximum_scalar", Maximum, 1>, ScalarEntry<"_minimum_scalar", Minimum, 1>,
          ScalarEntry<"_hypot_scalar", Hypot, 1>, ScalarEntry<"_mod_scalar", Modulo, 1>,
          ScalarEntry<"_rmod_scalar", Swapped<Modulo>, 1>, ScalarEntry<"_logical_and_scalar", LogicalAnd, 1>,
          ScalarEntry<"_logical_or_scalar", LogicalOr, 1>, ScalarEntry<"_logical_xor_scalar", LogicalXor, 1>>;
// Of (dy, lhs, rhs); with a scalar of (dy, x) and the scalar.
using ChoiceGradTable =
    Table<Entry<"_backward_maximum_lhs", MaximumLhsGrad, 3>, Entry<"_backward_maximum_rhs", MaximumRhsGrad, 3>,
          Entry<"_backward_minimum_lhs", MinimumLhsGrad, 3>, Entry<"_backward_minimum_rhs", MinimumRhsGrad, 3>,
          Entry<"_backward_hypot_lhs", HypotLhsGrad, 3>, Entry<"_backward_hypot_rhs", HypotRhsGrad, 3>,
          Entry<"_backward_mod_lhs", ModuloLhsGrad, 3>, Entry<"_backward_mod_rhs", ModuloRhsGrad, 3>>;
using ChoiceScalarGradTable =
    Table<ScalarEntry<"_backward_maximum_scalar", MaximumLhsGrad, 2>,
          ScalarEntry<"_backward_minimum_scalar", MinimumLhsGrad, 2>,
          ScalarEntry<"_backward_hypot_scalar", HypotLhsGrad, 2>, ScalarEntry<"_backward_mod_scalar", ModuloLhsGrad, 2>,
          ScalarEntry<"_backward_rmod_scalar", ReverseModuloGrad, 2>>;

// Every operator that can be part of a program (ops/pointwise.h).
template <class Visit>
constexpr void for_each_elementwise(Visit&& visit) {
  for_each(UnaryTable{}, visit);
  for_each(BinaryTable{}, visit);
  for_each(UnaryGradTable{}, visit);
  for_each(BinaryGradTable{}, visit);
  for_each(ScalarTable{}, visit);
  for_each(ScalarGradTable{}, visit);
  for_each(ActivationTable{}, visit);
  for_each(ActivationGradTable{}, visit);
  for_each(LeakyTable{}, visit);
  for_each(LeakyGradTable{}, visit);
  for_each(MathTable{}, visit);
  for_each(MathGradTable{}, visit);
  for_each(ChoiceTable{}, visit);
  for_each(ChoiceGradTable{}, visit);
  for_each(ChoiceScalarTable{}, visit);
  for_each(ChoiceScalarGradTable{}, visit);
}

// Of two arrays that are broadcast to one shape.
using BroadcastTable =
    Table<Entry<"broadcast_add", Add, 2>, Entry<"broadcast_sub", Subtract, 2>, Entry<"broadcast_mul", Multiply, 2>,
          Entry<"broadcast_div", Divide, 2>, Entry<"broadcast_power", Power, 2>, Entry<"broadcast_equal", Equal, 2>,
          Entry<"broadcast_not_equal", NotEqual, 2>, Entry<"broadcast_greater", Greater, 2>,
          Entry<"broadcast_greater_equal", GreaterEqual, 2>, Entry<"broadcast_lesser", Lesser, 2>,
          Entry<"broadcast_lesser_equal", LesserEqual, 2>>;
using ChoiceBroadcastTable =
    Table<Entry<"broadcast_maximum", Maximum, 2>, Entry<"broadcast_minimum", Minimum, 2>,
          Entry<"broadcast_hypot", Hypot, 2>, Entry<"broadcast_mod", Modulo, 2>,
          Entry<"broadcast_logical_and", LogicalAnd, 2>, Entry<"broadcast_logical_or", LogicalOr, 2>,
          Entry<"broadcast_logical_xor", LogicalXor, 2>>;

// ---- Activations by name --------------------------------------------------------------------------------------------

// Calls use(function) with the function of an entry.
template <class Function, class Use>
decltype(auto) use_function(Holds<Function>, Use&& use) {
  return use(Function{});
}

// Calls use(function) with the function for an act_type, of ActivationTable or ActivationGradTable.
template <class First, class... Rest, class Use>
decltype(auto) visit_activation(Table<First, Rest...>, std::string_view act_type, Use&& use) {
  if (act_type == First::text.view()) return use_function(First{}, use);
  if constexpr (sizeof...(Rest) > 0)
    return visit_activation(Table<Rest...>{}, act_type, use);
  else
    fail("unknown activation '", act_type, "'");
}

}  // namespace symbind::functions
