// Elementwise mathematical functions: Unary<"sin"> and so on, as in ops/elementwise.h. They are templates bound to
// symbols and arrays, so that they do not conflict with those of <cmath>.
#pragma once

#include "symbind/ops/elementwise.h"

namespace SYMBIND_API symbind {

// clang-format off
template <SymbolOrArray T> T abs(const T& x, const std::string& name = "") { return unary<"abs">(x, name); }
template <SymbolOrArray T> T sign(const T& x, const std::string& name = "") { return unary<"sign">(x, name); }
template <SymbolOrArray T> T round(const T& x, const std::string& name = "") { return unary<"round">(x, name); }
template <SymbolOrArray T> T rint(const T& x, const std::string& name = "") { return unary<"rint">(x, name); }
template <SymbolOrArray T> T ceil(const T& x, const std::string& name = "") { return unary<"ceil">(x, name); }
template <SymbolOrArray T> T floor(const T& x, const std::string& name = "") { return unary<"floor">(x, name); }
template <SymbolOrArray T> T fix(const T& x, const std::string& name = "") { return unary<"fix">(x, name); }
template <SymbolOrArray T> T trunc(const T& x, const std::string& name = "") { return unary<"trunc">(x, name); }
template <SymbolOrArray T> T rsqrt(const T& x, const std::string& name = "") { return unary<"rsqrt">(x, name); }
template <SymbolOrArray T> T cbrt(const T& x, const std::string& name = "") { return unary<"cbrt">(x, name); }
template <SymbolOrArray T> T rcbrt(const T& x, const std::string& name = "") { return unary<"rcbrt">(x, name); }
template <SymbolOrArray T> T log2(const T& x, const std::string& name = "") { return unary<"log2">(x, name); }
template <SymbolOrArray T> T log10(const T& x, const std::string& name = "") { return unary<"log10">(x, name); }
template <SymbolOrArray T> T log1p(const T& x, const std::string& name = "") { return unary<"log1p">(x, name); }
template <SymbolOrArray T> T expm1(const T& x, const std::string& name = "") { return unary<"expm1">(x, name); }
template <SymbolOrArray T> T sin(const T& x, const std::string& name = "") { return unary<"sin">(x, name); }
template <SymbolOrArray T> T cos(const T& x, const std::string& name = "") { return unary<"cos">(x, name); }
template <SymbolOrArray T> T tan(const T& x, const std::string& name = "") { return unary<"tan">(x, name); }
template <SymbolOrArray T> T arcsin(const T& x, const std::string& name = "") { return unary<"arcsin">(x, name); }
template <SymbolOrArray T> T arccos(const T& x, const std::string& name = "") { return unary<"arccos">(x, name); }
template <SymbolOrArray T> T arctan(const T& x, const std::string& name = "") { return unary<"arctan">(x, name); }
template <SymbolOrArray T> T sinh(const T& x, const std::string& name = "") { return unary<"sinh">(x, name); }
template <SymbolOrArray T> T cosh(const T& x, const std::string& name = "") { return unary<"cosh">(x, name); }
template <SymbolOrArray T> T arcsinh(const T& x, const std::string& name = "") { return unary<"arcsinh">(x, name); }
template <SymbolOrArray T> T arccosh(const T& x, const std::string& name = "") { return unary<"arccosh">(x, name); }
template <SymbolOrArray T> T arctanh(const T& x, const std::string& name = "") { return unary<"arctanh">(x, name); }
template <SymbolOrArray T> T degrees(const T& x, const std::string& name = "") { return unary<"degrees">(x, name); }
template <SymbolOrArray T> T radians(const T& x, const std::string& name = "") { return unary<"radians">(x, name); }
template <SymbolOrArray T> T erf(const T& x, const std::string& name = "") { return unary<"erf">(x, name); }
template <SymbolOrArray T> T erfinv(const T& x, const std::string& name = "") { return unary<"erfinv">(x, name); }
template <SymbolOrArray T> T gamma(const T& x, const std::string& name = "") { return unary<"gamma">(x, name); }
template <SymbolOrArray T> T gammaln(const T& x, const std::string& name = "") { return unary<"gammaln">(x, name); }
template <SymbolOrArray T> T reciprocal(const T& x, const std::string& name = "") { return unary<"reciprocal">(x, name); }
template <SymbolOrArray T> T softsign(const T& x, const std::string& name = "") { return unary<"softsign">(x, name); }
template <SymbolOrArray T> T logical_not(const T& x, const std::string& name = "") { return unary<"logical_not">(x, name); }
// clang-format on

struct Clip {
  Required<double> a_min = {};
  Required<double> a_max = {};
};
inline constexpr Builder<Clip> clip;

struct HardSigmoid {
  double alpha = 0.2;
  double beta = 0.5;
};
inline constexpr Builder<HardSigmoid> hard_sigmoid;

struct SmoothL1 {
  double scalar = 1;
};
inline constexpr Builder<SmoothL1> smooth_l1;

// (out_grad, data) → data_grad
struct SmoothL1Grad : SmoothL1 {};
inline constexpr Builder<SmoothL1Grad> smooth_l1_grad;
struct ClipGrad : Clip {};
inline constexpr Builder<ClipGrad> clip_grad;
struct HardSigmoidGrad : HardSigmoid {};
inline constexpr Builder<HardSigmoidGrad> hard_sigmoid_grad;

}  // namespace symbind
