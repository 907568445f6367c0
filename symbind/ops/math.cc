#include "symbind/ops/math.h"

#include "symbind/graph/define.h"
#include "symbind/ops/floating.h"

namespace symbind {
namespace {

template <FixedString name>
Op<Unary<name>> function_op(std::string doc) {
  Op<Unary<name>> op{std::string(name.view())};
  op.doc(std::move(doc)).elementwise();
  return op;
}

// A function and its gradient, an operator of (out_grad, data).
template <FixedString name, FixedString grad_name>
void add_smooth(OpRegistry& registry, std::string doc, Precision precision = Precision::as_given) {
  auto op = function_op<name>(std::move(doc));
  op.precision(precision).gradient(
      [](const auto&, Grad& g) { g.set("data", Builder<UnaryGrad<grad_name>>{}(g.out_grad(), g.input("data"))); });
  registry.add(op, typeid(Unary<name>));
  Op<UnaryGrad<grad_name>> grad{std::string(grad_name.view())};
  grad.internal().inputs({"out_grad", "data"}).elementwise();
  registry.add(grad, typeid(UnaryGrad<grad_name>));
}

// A function whose derivative is zero wherever it is defined.
template <FixedString name>
void add_flat(OpRegistry& registry, std::string doc) {
  registry.add(function_op<name>(std::move(doc)), typeid(Unary<name>));
}

void add_roundings(OpRegistry& registry) {
  add_flat<"sign">(registry, "Sign of each element: 1, 0 or -1.");
  add_flat<"round">(registry, "Each element rounded to the nearest integer; halves are rounded away from zero.");
  add_flat<"rint">(registry, "Each element rounded to the nearest integer; halves are rounded down.");
  add_flat<"ceil">(registry, "Each element rounded up to an integer.");
  add_flat<"floor">(registry, "Each element rounded down to an integer.");
  add_flat<"fix">(registry, "Each element rounded towards zero to an integer.");
  add_flat<"trunc">(registry, "Each element rounded towards zero to an integer.");
  add_flat<"logical_not">(registry, "Logical not: 1 where x is 0, else 0.");
}

void add_functions(OpRegistry& registry) {
  add_smooth<"abs", "_backward_abs">(registry, "Absolute value |x| of each element.");
  add_smooth<"rsqrt", "_backward_rsqrt">(registry, "1 / √x for each element.", Precision::full);
  add_smooth<"cbrt", "_backward_cbrt">(registry, "Cube root of each element.");
  add_smooth<"rcbrt", "_backward_rcbrt">(registry, "1 / ∛x for each element.", Precision::full);
  add_smooth<"log2", "_backward_log2">(registry, "Logarithm to base 2 of each element.", Precision::full);
  add_smooth<"log10", "_backward_log10">(registry, "Logarithm to base 10 of each element.", Precision::full);
  add_smooth<"log1p", "_backward_log1p">(registry, "log(1 + x) for each element, accurate for small x.",
                                         Precision::full);
  add_smooth<"expm1", "_backward_expm1">(registry, "exp(x) - 1 for each element, accurate for small x.",
                                         Precision::full);
  add_smooth<"sin", "_backward_sin">(registry, "Sine of each element, in radians.");
  add_smooth<"cos", "_backward_cos">(registry, "Cosine of each element, in radians.");
  add_smooth<"tan", "_backward_tan">(registry, "Tangent of each element, in radians.", Precision::full);
  add_smooth<"arcsin", "_backward_arcsin">(registry, "Inverse sine of each element, in radians from -π/2 to π/2.",
                                           Precision::full);
  add_smooth<"arccos", "_backward_arccos">(registry, "Inverse cosine of each element, in radians from 0 to π.",
                                           Precision::full);
  add_smooth<"arctan", "_backward_arctan">(registry, "Inverse tangent of each element, in radians from -π/2 to π/2.");
  add_smooth<"sinh", "_backward_sinh">(registry, "Hyperbolic sine of each element.", Precision::full);
  add_smooth<"cosh", "_backward_cosh">(registry, "Hyperbolic cosine of each element.", Precision::full);
  add_smooth<"arcsinh", "_backward_arcsinh">(registry, "Inverse hyperbolic sine of each element.");
  add_smooth<"arccosh", "_backward_arccosh">(registry, "Inverse hyperbolic cosine of each element, for x ≥ 1.");
  add_smooth<"arctanh", "_backward_arctanh">(registry, "Inverse hyperbolic tangent of each element, for |x| < 1.",
                                             Precision::full);
  add_smooth<"degrees", "_backward_degrees">(registry, "Each element converted from radians to degrees.");
  add_smooth<"radians", "_backward_radians">(registry, "Each element converted from degrees to radians.");
  add_smooth<"erf", "_backward_erf">(registry, "Error function of each element: erf(x) = 2 / √π · ∫₀ˣ exp(-t²) dt.");
  add_smooth<"erfinv", "_backward_erfinv">(registry, "Inverse error function of each element, for |x| < 1.",
                                           Precision::full);
  add_smooth<"gamma", "_backward_gamma">(registry, "Gamma function Γ(x) of each element.", Precision::full);
  add_smooth<"gammaln", "_backward_gammaln">(registry, "log |Γ(x)| for each element.", Precision::full);
  add_smooth<"reciprocal", "_backward_reciprocal">(registry, "1 / x for each element.", Precision::full);
  add_smooth<"softsign", "_backward_softsign">(registry, "x / (1 + |x|) for each element.");
}

template <class P>
Op<P>& clip_fields(Op<P>& op) {
  return op.param(&Clip::a_min, "a_min", "lower bound of the results")
      .param(&Clip::a_max, "a_max", "upper bound of the results")
      .elementwise();
}

OpDef define_clip(Op<Clip> op) {
  return clip_fields(op)
      .doc("Each element limited to the interval [a_min, a_max].")
      .gradient([](const Clip& p, Grad& g) { g.set("data", clip_grad(g.out_grad(), g.input("data"), {p})); });
}
OpDef define_clip_grad(Op<ClipGrad> op) { return clip_fields(op).inputs({"out_grad", "data"}); }

template <class P>
Op<P>& hard_sigmoid_fields(Op<P>& op) {
  return op.param(&HardSigmoid::alpha, "alpha", "slope of the linear part")
      .param(&HardSigmoid::beta, "beta", "value at x = 0")
      .elementwise();
}

OpDef define_hard_sigmoid(Op<HardSigmoid> op) {
  return hard_sigmoid_fields(op)
      .doc("Piecewise linear approximation of the logistic function: max(0, min(1, alpha·x + beta)) for each element.")
      .infer_type([](const HardSigmoid&, Types& t) { same_floating_type(t); })
      .gradient(
          [](const HardSigmoid& p, Grad& g) { g.set("data", hard_sigmoid_grad(g.out_grad(), g.input("data"), {p})); });
}
OpDef define_hard_sigmoid_grad(Op<HardSigmoidGrad> op) { return hard_sigmoid_fields(op).inputs({"out_grad", "data"}); }

OpDef define_smooth_l1(Op<SmoothL1> op) {
  return op.doc("Smooth L1 loss of each element: (scalar·x)²/2 where |x| < 1/scalar², else |x| - 0.5/scalar².")
      .param(&SmoothL1::scalar, "scalar",
             "sets the boundary between the quadratic and the linear part, |x| = 1/scalar²")
      .elementwise()
      .precision(Precision::full)
      .gradient([](const SmoothL1& p, Grad& g) { g.set("data", smooth_l1_grad(g.out_grad(), g.input("data"), {p})); });
}
OpDef define_smooth_l1_grad(Op<SmoothL1Grad> op) {
  return op.param(&SmoothL1::scalar, "scalar", "sets the boundary between the quadratic and the linear part")
      .inputs({"out_grad", "data"})
      .elementwise();
}

}  // namespace

void register_math(OpRegistry& registry) {
  add_roundings(registry);
  add_functions(registry);
  add(registry, "clip", define_clip);
  add_internal(registry, "_backward_clip", define_clip_grad);
  add(registry, "smooth_l1", define_smooth_l1);
  add_internal(registry, "_backward_smooth_l1", define_smooth_l1_grad);
  add(registry, "hard_sigmoid", define_hard_sigmoid);
  add_internal(registry, "_backward_hard_sigmoid", define_hard_sigmoid_grad);
}

}  // namespace symbind
