// Functions of one or two arrays, element by element. The operator's name is part of its type: Unary<"relu"> has no
// parameters but its name. The functions of one argument are templates bound to symbols and arrays, so that exp, log,
// sqrt and tanh do not conflict with those of <cmath>.
#pragma once

#include <concepts>
#include <string>

#include "symbind/core/fixed_string.h"
#include "symbind/graph/builder.h"

namespace SYMBIND_API symbind {

template <FixedString name>
struct Unary {};
template <FixedString name>
struct Binary {};
// The gradient of a function: of (out_grad, output) or (out_grad, input) for one argument, of (out_grad, lhs, rhs) for
// two.
template <FixedString name>
struct UnaryGrad {};
template <FixedString name>
struct BinaryGrad {};

template <class T>
concept SymbolOrArray = std::same_as<T, Symbol> || std::same_as<T, NDArray>;

template <FixedString op, SymbolOrArray T>
T unary(const T& x, const std::string& name) {
  if constexpr (std::same_as<T, Symbol>)
    return Builder<Unary<op>>{}(x, {}, name);
  else
    return Builder<Unary<op>>{}(x);
}

// clang-format off
template <SymbolOrArray T> T negative(const T& x, const std::string& name = "") { return unary<"negative">(x, name); }
template <SymbolOrArray T> T relu(const T& x, const std::string& name = "") { return unary<"relu">(x, name); }
template <SymbolOrArray T> T sigmoid(const T& x, const std::string& name = "") { return unary<"sigmoid">(x, name); }
template <SymbolOrArray T> T tanh(const T& x, const std::string& name = "") { return unary<"tanh">(x, name); }
template <SymbolOrArray T> T exp(const T& x, const std::string& name = "") { return unary<"exp">(x, name); }
template <SymbolOrArray T> T log(const T& x, const std::string& name = "") { return unary<"log">(x, name); }
template <SymbolOrArray T> T square(const T& x, const std::string& name = "") { return unary<"square">(x, name); }
template <SymbolOrArray T> T sqrt(const T& x, const std::string& name = "") { return unary<"sqrt">(x, name); }
template <SymbolOrArray T> T identity(const T& x, const std::string& name = "") { return unary<"_copy">(x, name); }
// The identity, without a gradient.
template <SymbolOrArray T> T stop_gradient(const T& x, const std::string& name = "") { return unary<"BlockGrad">(x, name); }
// The identity as a loss: its gradient is one. (MakeLoss, with its scale and normalization, is in ops/loss.h.)
template <SymbolOrArray T> T as_loss(const T& x, const std::string& name = "") { return unary<"make_loss">(x, name); }
template <SymbolOrArray T> T zeros_like(const T& x, const std::string& name = "") { return unary<"zeros_like">(x, name); }
template <SymbolOrArray T> T ones_like(const T& x, const std::string& name = "") { return unary<"ones_like">(x, name); }
// clang-format on

inline constexpr Builder<Binary<"elemwise_add">> elemwise_add;
inline constexpr Builder<Binary<"elemwise_sub">> elemwise_sub;
inline constexpr Builder<Binary<"elemwise_mul">> elemwise_mul;
inline constexpr Builder<Binary<"elemwise_div">> elemwise_div;
inline constexpr Builder<Binary<"_power">> elemwise_power;
// Comparisons give 1 and 0 in the type of their operands.
inline constexpr Builder<Binary<"_equal">> elemwise_equal;
inline constexpr Builder<Binary<"_not_equal">> elemwise_not_equal;
inline constexpr Builder<Binary<"_greater">> elemwise_greater;
inline constexpr Builder<Binary<"_greater_equal">> elemwise_greater_equal;
inline constexpr Builder<Binary<"_lesser">> elemwise_lesser;
inline constexpr Builder<Binary<"_lesser_equal">> elemwise_lesser_equal;
// Maximum and minimum, and the remainder of a division that rounds down.
inline constexpr Builder<Binary<"_maximum">> elemwise_maximum;
inline constexpr Builder<Binary<"_minimum">> elemwise_minimum;
inline constexpr Builder<Binary<"_hypot">> elemwise_hypot;
inline constexpr Builder<Binary<"_mod">> elemwise_mod;
inline constexpr Builder<Binary<"_logical_and">> elemwise_logical_and;
inline constexpr Builder<Binary<"_logical_or">> elemwise_logical_or;
inline constexpr Builder<Binary<"_logical_xor">> elemwise_logical_xor;

// dx of (dy, y).
inline constexpr Builder<UnaryGrad<"_backward_relu">> relu_grad;
inline constexpr Builder<UnaryGrad<"_backward_sigmoid">> sigmoid_grad;
inline constexpr Builder<UnaryGrad<"_backward_tanh">> tanh_grad;
inline constexpr Builder<UnaryGrad<"_backward_sqrt">> sqrt_grad;
// dx of (dy, x).
inline constexpr Builder<UnaryGrad<"_backward_log">> log_grad;
inline constexpr Builder<UnaryGrad<"_backward_square">> square_grad;
// The gradient of a quotient's lhs of (dy, rhs).
inline constexpr Builder<UnaryGrad<"_backward_div_lhs">> div_lhs_grad;
// One operand's gradient of (dy, lhs, rhs).
inline constexpr Builder<BinaryGrad<"_backward_div_rhs">> div_rhs_grad;
inline constexpr Builder<BinaryGrad<"_backward_power_lhs">> power_lhs_grad;
inline constexpr Builder<BinaryGrad<"_backward_power_rhs">> power_rhs_grad;
inline constexpr Builder<BinaryGrad<"_backward_maximum_lhs">> maximum_lhs_grad;
inline constexpr Builder<BinaryGrad<"_backward_maximum_rhs">> maximum_rhs_grad;
inline constexpr Builder<BinaryGrad<"_backward_minimum_lhs">> minimum_lhs_grad;
inline constexpr Builder<BinaryGrad<"_backward_minimum_rhs">> minimum_rhs_grad;
inline constexpr Builder<BinaryGrad<"_backward_hypot_lhs">> hypot_lhs_grad;
inline constexpr Builder<BinaryGrad<"_backward_hypot_rhs">> hypot_rhs_grad;
inline constexpr Builder<BinaryGrad<"_backward_mod_lhs">> mod_lhs_grad;
inline constexpr Builder<BinaryGrad<"_backward_mod_rhs">> mod_rhs_grad;

// The sum of any number of arrays of one shape.
struct AddN {
  Required<int64_t> num_args = {};
};
inline constexpr Builder<AddN> add_n;

}  // namespace symbind
