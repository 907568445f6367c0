// For an integer array and a floating-point scalar (is_int false) the result is float64; booleans become int64 or
// float64. The gradients are computed in the result's type and cast back.
#include "symbind/ops/scalar.h"

#include "symbind/graph/define.h"
#include "symbind/ops/cast.h"
#include "symbind/ops/elementwise.h"

namespace symbind {
namespace {

DType result_type(DType data, bool is_int) {
  if (is_floating(data)) return data;
  if (!is_int) return DType::float64;
  return data == DType::boolean ? DType::int64 : data;
}

template <FixedString name>
Op<WithScalar<name>> scalar_op(std::string doc, Names aliases) {
  using P = WithScalar<name>;
  Op<P> op{std::string(name.view())};
  op.doc(std::move(doc))
      .aliases(std::move(aliases))
      .param(&P::scalar, "scalar", "the scalar operand")
      .param(&P::is_int, "is_int",
             "whether scalar is an integer: with True an integer array gives an integer result, with False a float64 "
             "result")
      .elementwise()
      .infer_type([](const P& p, Types& t) {
        if (t["data"].known())
          t.output().meet(result_type(t["data"], p.is_int));
        else
          t["data"].meet(t.output());
      });
  return op;
}

template <FixedString name, class Gradient>
void add(OpRegistry& registry, std::string doc, Names aliases, Gradient gradient,
         Precision precision = Precision::as_given) {
  auto op = scalar_op<name>(std::move(doc), std::move(aliases));
  op.precision(precision).gradient(
      [gradient](const WithScalar<name>& p, Grad& g) { g.set("data", cast_like(gradient(p, g), g.input("data"))); });
  registry.add(op, typeid(WithScalar<name>));
}
template <FixedString name>
void add_comparison(OpRegistry& registry, std::string doc, Names aliases) {
  registry.add(scalar_op<name>(std::move(doc), std::move(aliases)), typeid(WithScalar<name>));
}

template <FixedString name>
void add_grad(OpRegistry& registry, const char* read) {
  using P = WithScalar<name>;
  Op<P> op{std::string(name.view())};
  op.internal()
      .inputs({"out_grad", read})
      .param(&P::scalar, "scalar", "the scalar operand")
      .param(&P::is_int, "is_int", "whether scalar is an integer")
      .elementwise()
      .infer_type([](const P&, Types& t) {
        t.output().meet(t["out_grad"]);
        t["out_grad"].meet(t.output());
      });
  registry.add(op, typeid(P));
}

// A function whose gradient is another of (out_grad, data) and the scalar.
template <FixedString name, FixedString grad_name>
void add_choice(OpRegistry& registry, std::string doc, Names aliases, Precision precision = Precision::as_given) {
  add<name>(
      registry, std::move(doc), std::move(aliases),
      [](auto& p, Grad& g) {
        return Builder<WithScalar<grad_name>>{}(g.out_grad(), g.input("data"),
                                                {.scalar = p.scalar, .is_int = p.is_int});
      },
      precision);
  add_grad<grad_name>(registry, "data");
}

void add_choices(OpRegistry& registry) {
  add_choice<"_maximum_scalar", "_backward_maximum_scalar">(registry, "max(data, scalar), element by element.",
                                                            {"_MaximumScalar"});
  add_choice<"_minimum_scalar", "_backward_minimum_scalar">(registry, "min(data, scalar), element by element.",
                                                            {"_MinimumScalar"});
  add_choice<"_hypot_scalar", "_backward_hypot_scalar">(
      registry, "√(data² + scalar²), element by element, without overflow of the squares.", {"_HypotScalar"},
      Precision::full);
  add_choice<"_mod_scalar", "_backward_mod_scalar">(
      registry,
      "Remainder of data / scalar with the sign of scalar, element by element: data - scalar · floor(data / scalar); 0 "
      "where scalar is 0.",
      {"_ModScalar"});
  add_choice<"_rmod_scalar", "_backward_rmod_scalar">(
      registry,
      "Remainder of scalar / data with the sign of data, element by element: scalar - data · floor(scalar / data); 0 "
      "where data is 0.",
      {"_RModScalar"});
  add_comparison<"_logical_and_scalar">(registry, "Logical and: 1 where both data and scalar are nonzero, else 0.",
                                        {"_LogicalAndScalar"});
  add_comparison<"_logical_or_scalar">(registry, "Logical or: 1 where data or scalar is nonzero, else 0.",
                                       {"_LogicalOrScalar"});
  add_comparison<"_logical_xor_scalar">(
      registry, "Logical exclusive or: 1 where exactly one of data and scalar is nonzero, else 0.",
      {"_LogicalXorScalar"});
}

}  // namespace

void register_scalar(OpRegistry& registry) {
  add<"_plus_scalar">(registry, "data + scalar, element by element.", {"_PlusScalar", "_scatter_plus_scalar"},
                      [](auto&, Grad& g) { return g.out_grad(); });
  add<"_minus_scalar">(registry, "data - scalar, element by element.", {"_MinusScalar", "_scatter_minus_scalar"},
                       [](auto&, Grad& g) { return g.out_grad(); });
  add<"_rminus_scalar">(registry, "scalar - data, element by element.", {"_RMinusScalar"},
                        [](auto&, Grad& g) { return negative(g.out_grad()); });
  add<"_mul_scalar">(registry, "data · scalar, element by element.", {"_MulScalar"}, [](auto& p, Grad& g) {
    return mul_scalar(g.out_grad(), {.scalar = p.scalar, .is_int = p.is_int});
  });
  add<"_div_scalar">(registry, "data / scalar, element by element.", {"_DivScalar"}, [](auto& p, Grad& g) {
    return div_scalar(g.out_grad(), {.scalar = p.scalar, .is_int = p.is_int});
  });
  add<"_rdiv_scalar">(
      registry, "scalar / data, element by element.", {"_RDivScalar"},
      [](auto& p, Grad& g) {
        return rdiv_scalar_grad(g.out_grad(), g.input("data"), {.scalar = p.scalar, .is_int = p.is_int});
      },
      Precision::full);
  add<"_power_scalar">(
      registry, "data raised to the power scalar, element by element.", {"_PowerScalar"},
      [](auto& p, Grad& g) {
        return power_scalar_grad(g.out_grad(), g.input("data"), {.scalar = p.scalar, .is_int = p.is_int});
      },
      Precision::full);
  add<"_rpower_scalar">(
      registry, "scalar raised to the power data, element by element.", {"_RPowerScalar"},
      [](auto& p, Grad& g) {
        return rpower_scalar_grad(g.out_grad(), g.output(), {.scalar = p.scalar, .is_int = p.is_int});
      },
      Precision::full);
  add_comparison<"_equal_scalar">(registry, "1 where data = scalar, else 0, element by element.", {"_EqualScalar"});
  add_comparison<"_not_equal_scalar">(registry, "1 where data ≠ scalar, else 0, element by element.",
                                      {"_NotEqualScalar"});
  add_comparison<"_greater_scalar">(registry, "1 where data > scalar, else 0, element by element.", {"_GreaterScalar"});
  add_comparison<"_greater_equal_scalar">(registry, "1 where data ≥ scalar, else 0, element by element.",
                                          {"_GreaterEqualScalar"});
  add_comparison<"_lesser_scalar">(registry, "1 where data < scalar, else 0, element by element.", {"_LesserScalar"});
  add_comparison<"_lesser_equal_scalar">(registry, "1 where data ≤ scalar, else 0, element by element.",
                                         {"_LesserEqualScalar"});
  add_choices(registry);
  add_grad<"_backward_rdiv_scalar">(registry, "data");
  add_grad<"_backward_power_scalar">(registry, "data");
  add_grad<"_backward_rpower_scalar">(registry, "output");
}

}  // namespace symbind
