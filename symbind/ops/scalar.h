// Functions of an array and a number.
#pragma once

#include "symbind/core/fixed_string.h"
#include "symbind/graph/builder.h"

namespace SYMBIND_API symbind {

template <FixedString name>
struct WithScalar {
  double scalar = 1;
  bool is_int = true;
};

inline constexpr Builder<WithScalar<"_plus_scalar">> plus_scalar;
inline constexpr Builder<WithScalar<"_minus_scalar">> minus_scalar;
inline constexpr Builder<WithScalar<"_rminus_scalar">> rminus_scalar;
inline constexpr Builder<WithScalar<"_mul_scalar">> mul_scalar;
inline constexpr Builder<WithScalar<"_div_scalar">> div_scalar;
inline constexpr Builder<WithScalar<"_rdiv_scalar">> rdiv_scalar;
inline constexpr Builder<WithScalar<"_power_scalar">> power_scalar;
inline constexpr Builder<WithScalar<"_rpower_scalar">> rpower_scalar;
inline constexpr Builder<WithScalar<"_equal_scalar">> equal_scalar;
inline constexpr Builder<WithScalar<"_not_equal_scalar">> not_equal_scalar;
inline constexpr Builder<WithScalar<"_greater_scalar">> greater_scalar;
inline constexpr Builder<WithScalar<"_greater_equal_scalar">> greater_equal_scalar;
inline constexpr Builder<WithScalar<"_lesser_scalar">> lesser_scalar;
inline constexpr Builder<WithScalar<"_lesser_equal_scalar">> lesser_equal_scalar;
inline constexpr Builder<WithScalar<"_maximum_scalar">> maximum_scalar;
inline constexpr Builder<WithScalar<"_minimum_scalar">> minimum_scalar;
inline constexpr Builder<WithScalar<"_hypot_scalar">> hypot_scalar;
inline constexpr Builder<WithScalar<"_mod_scalar">> mod_scalar;
inline constexpr Builder<WithScalar<"_rmod_scalar">> rmod_scalar;
inline constexpr Builder<WithScalar<"_logical_and_scalar">> logical_and_scalar;
inline constexpr Builder<WithScalar<"_logical_or_scalar">> logical_or_scalar;
inline constexpr Builder<WithScalar<"_logical_xor_scalar">> logical_xor_scalar;

// dx of (dy, x).
inline constexpr Builder<WithScalar<"_backward_rdiv_scalar">> rdiv_scalar_grad;
inline constexpr Builder<WithScalar<"_backward_power_scalar">> power_scalar_grad;
// dx of (dy, y).
inline constexpr Builder<WithScalar<"_backward_rpower_scalar">> rpower_scalar_grad;

}  // namespace symbind
