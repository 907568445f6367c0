// Functions of MXNet's contrib namespace that are small expressions of others, and identities whose gradient is not
// the identity.
#pragma once

#include "symbind/graph/builder.h"
#include "symbind/ops/composition.h"

namespace SYMBIND_API symbind {

// a·x² + b·x + c
struct Quadratic {
  double a = 0;
  double b = 0;
  double c = 0;
};
inline constexpr Builder<Quadratic> quadratic;

// x / √(extent of the last axis)
struct DivSqrtDim {};
inline constexpr Builder<DivSqrtDim> div_sqrt_dim;

// round(x) and sign(x), whose gradients are those of the identity (straight-through estimators).
struct RoundSte {};
inline constexpr Builder<RoundSte> round_ste;
struct SignSte {};
inline constexpr Builder<SignSte> sign_ste;

// The identity; gradients are multiplied by `scalar`.
struct GradientMultiplier {
  double scalar = 1;
  bool is_int = true;
};
inline constexpr Builder<GradientMultiplier> gradientmultiplier;

// The identity of lhs, which has the shape and type of rhs.
struct IdentityLike {};
inline constexpr Builder<IdentityLike> identity_with_attr_like_rhs;

// start, start + step, … each `repeat` times: in the shape of data, or as many as data has along an axis.
struct ArangeLike {
  double start = 0;
  double step = 1;
  int64_t repeat = 1;
  std::string ctx = "";
  std::optional<int64_t> axis = {};
};
inline constexpr Builder<ArangeLike> arange_like;

// The index of each element along each of the axes (none: all), as a new last axis.
struct IndexArray {
  TupleOrNone axes = {};
};
inline constexpr Builder<IndexArray> index_array;

Symbol network_of(const Quadratic& params, const ComposedInputs& in);
Symbol network_of(const DivSqrtDim& params, const ComposedInputs& in);
Symbol network_of(const RoundSte& params, const ComposedInputs& in);
Symbol network_of(const SignSte& params, const ComposedInputs& in);

}  // namespace symbind
