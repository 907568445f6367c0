#include "symbind/ops/broadcast.h"

#include <algorithm>

#include "symbind/graph/define.h"
#include "symbind/ops/elementwise.h"

namespace symbind {
namespace {

// Output dimensions follow where both operands' are known. Nothing is inferred backwards: an operand may always have
// been 1.
void infer_broadcast(Shapes& s) {
  const auto lhs = s["lhs"], rhs = s["rhs"];
  if (!lhs.rank_known() || !rhs.rank_known()) return;
  const int rank = std::max(lhs.rank(), rhs.rank());
  Shape shape = Shape::of_rank(rank);
  for (int axis = 0; axis < rank; ++axis) {
    const int l = axis - (rank - lhs.rank()), r = axis - (rank - rhs.rank());
    const int64_t left = l < 0 ? 1 : lhs[l], right = r < 0 ? 1 : rhs[r];
    if (left == unknown_dim || right == unknown_dim) continue;
    require(left == right || left == 1 || right == 1, s.where(), " lhs and rhs must broadcast: lhs ", lhs.get(),
            ", rhs ", rhs.get());
    shape[axis] = left == 1 ? right : left;
  }
  s.output().meet(shape);
}

template <FixedString name>
Op<Broadcast<name>> broadcast_op(std::string doc) {
  Op<Broadcast<name>> op{std::string(name.view())};
  op.doc(doc + " Axes of extent 1 are broadcast.")
      .memory_bound()
      .inputs({"lhs", "rhs"})
      .infer_shape([](const auto&, Shapes& s) { infer_broadcast(s); });
  return op;
}

template <FixedString name, class Gradient>
void add(OpRegistry& registry, std::string doc, Names aliases, Gradient gradient) {
  auto op = broadcast_op<name>(std::move(doc));
  op.aliases(std::move(aliases)).gradient([gradient](const auto&, Grad& g) { gradient(g); });
  registry.add(op, typeid(Broadcast<name>));
}
template <FixedString name>
void add_comparison(OpRegistry& registry, std::string doc) {
  registry.add(broadcast_op<name>(std::move(doc)), typeid(Broadcast<name>));
}

// Sets the gradient of an operand from one in the shape of the result.
void set_summed(Grad& g, const char* operand, const Symbol& gradient) {
  g.set(operand, sum_to_like(gradient, g.input(operand)));
}
Symbol spread(Grad& g, const char* operand) { return spread_like(g.input(operand), g.out_grad()); }

// A function with a gradient of (out_grad, lhs, rhs) for each operand.
template <FixedString name, class Lhs, class Rhs>
void add_choice(OpRegistry& registry, std::string doc, Lhs lhs, Rhs rhs) {
  add<name>(registry, std::move(doc), {}, [lhs, rhs](Grad& g) {
    if (g.wants("lhs")) set_summed(g, "lhs", lhs(g.out_grad(), spread(g, "lhs"), spread(g, "rhs")));
    if (g.wants("rhs")) set_summed(g, "rhs", rhs(g.out_grad(), spread(g, "lhs"), spread(g, "rhs")));
  });
}

void add_choices(OpRegistry& registry) {
  add_choice<"broadcast_maximum">(registry, "max(lhs, rhs), element by element.", maximum_lhs_grad, maximum_rhs_grad);
  add_choice<"broadcast_minimum">(registry, "min(lhs, rhs), element by element.", minimum_lhs_grad, minimum_rhs_grad);
  add_choice<"broadcast_hypot">(registry, "√(lhs² + rhs²), element by element.", hypot_lhs_grad, hypot_rhs_grad);
  add_choice<"broadcast_mod">(
      registry, "Remainder of lhs / rhs with the sign of rhs: lhs - rhs · floor(lhs / rhs); 0 where rhs is 0.",
      mod_lhs_grad, mod_rhs_grad);
  add_comparison<"broadcast_logical_and">(registry, "Logical and: 1 where both inputs are nonzero, else 0.");
  add_comparison<"broadcast_logical_or">(registry, "Logical or: 1 where at least one input is nonzero, else 0.");
  add_comparison<"broadcast_logical_xor">(registry,
                                          "Logical exclusive or: 1 where exactly one input is nonzero, else 0.");
}

// The smaller array broadcasts to the shape of the larger one.
void require_broadcast(Shapes& s, const char* smaller, const char* larger) {
  const auto from = s[smaller], to = s[larger];
  if (!from.known() || !to.known()) return;
  bool fits = from.rank() <= to.rank();
  for (int axis = 1; fits && axis <= from.rank(); ++axis) fits = from[-axis] == to[-axis] || from[-axis] == 1;
  require(fits, s.where(), " ", smaller, " must broadcast to ", larger, ": ", smaller, " ", from.get(), ", ", larger,
          " ", to.get());
}

OpDef define(Op<SumToLike> op) {
  return op.inputs({"data", "like"})
      .shape_only({"like"})
      .infer_shape([](const auto&, Shapes& s) {
        s.output().meet(s["like"]);
        require_broadcast(s, "like", "data");
      })
      .gradient([](const auto&, Grad& g) { g.set("data", spread_like(g.out_grad(), g.input("data"))); });
}

OpDef define(Op<SpreadLike> op) {
  return op.inputs({"data", "like"})
      .shape_only({"like"})
      .infer_shape([](const auto&, Shapes& s) {
        s.output().meet(s["like"]);
        require_broadcast(s, "data", "like");
      })
      .gradient([](const auto&, Grad& g) { g.set("data", sum_to_like(g.out_grad(), g.input("data"))); });
}

}  // namespace

void register_broadcast(OpRegistry& registry) {
  add<"broadcast_add">(registry, "lhs + rhs, element by element.", {"broadcast_plus"}, [](Grad& g) {
    if (g.wants("lhs")) set_summed(g, "lhs", g.out_grad());
    if (g.wants("rhs")) set_summed(g, "rhs", g.out_grad());
  });
  add<"broadcast_sub">(registry, "lhs - rhs, element by element.", {"broadcast_minus"}, [](Grad& g) {
    if (g.wants("lhs")) set_summed(g, "lhs", g.out_grad());
    if (g.wants("rhs")) g.set("rhs", negative(sum_to_like(g.out_grad(), g.input("rhs"))));
  });
  add<"broadcast_mul">(registry, "lhs · rhs, element by element.", {}, [](Grad& g) {
    if (g.wants("lhs")) set_summed(g, "lhs", broadcast_mul(g.out_grad(), g.input("rhs")));
    if (g.wants("rhs")) set_summed(g, "rhs", broadcast_mul(g.out_grad(), g.input("lhs")));
  });
  add<"broadcast_div">(registry, "lhs / rhs, element by element.", {}, [](Grad& g) {
    if (g.wants("lhs")) set_summed(g, "lhs", div_lhs_grad(g.out_grad(), spread(g, "rhs")));
    if (g.wants("rhs")) set_summed(g, "rhs", div_rhs_grad(g.out_grad(), spread(g, "lhs"), spread(g, "rhs")));
  });
  add<"broadcast_power">(registry, "lhs raised to the power rhs, element by element.", {}, [](Grad& g) {
    if (g.wants("lhs")) set_summed(g, "lhs", power_lhs_grad(g.out_grad(), spread(g, "lhs"), spread(g, "rhs")));
    if (g.wants("rhs")) set_summed(g, "rhs", power_rhs_grad(g.out_grad(), spread(g, "lhs"), spread(g, "rhs")));
  });
  add_comparison<"broadcast_equal">(registry, "1 where lhs = rhs, else 0.");
  add_comparison<"broadcast_not_equal">(registry, "1 where lhs ≠ rhs, else 0.");
  add_comparison<"broadcast_greater">(registry, "1 where lhs > rhs, else 0.");
  add_comparison<"broadcast_greater_equal">(registry, "1 where lhs ≥ rhs, else 0.");
  add_comparison<"broadcast_lesser">(registry, "1 where lhs < rhs, else 0.");
  add_comparison<"broadcast_lesser_equal">(registry, "1 where lhs ≤ rhs, else 0.");
  add_choices(registry);
  add_internal<SumToLike>(registry, "_sum_to_like", define);
  add_internal<SpreadLike>(registry, "_spread_like", define);
}

}  // namespace symbind
