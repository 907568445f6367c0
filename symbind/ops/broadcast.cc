#include "symbind/ops/broadcast.h"

#include <algorithm>

#include "symbind/graph/define.h"
#include "symbind/ops/elementwise.h"

namespace symbind {
namespace {

// ---- broadcast_add, … -----------------------------------------------------------------------------------------------

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
      .precision(Precision::widest)
      .inputs({"lhs", "rhs"})
      .infer_shape([](const auto&, Shapes& s) { infer_broadcast(s); });
  return op;
}

template <FixedString name, class Gradient>
void add(OpRegistry& registry, std::string doc, Names aliases, Gradient gradient,
         Precision precision = Precision::widest) {
  auto op = broadcast_op<name>(std::move(doc));
  op.aliases(std::move(aliases)).precision(precision).gradient([gradient](const auto&, Grad& g) { gradient(g); });
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
void add_choice(OpRegistry& registry, std::string doc, Lhs lhs, Rhs rhs, Precision precision = Precision::widest) {
  add<name>(
      registry, std::move(doc), {},
      [lhs, rhs](Grad& g) {
        const Symbol all_lhs = spread(g, "lhs"), all_rhs = spread(g, "rhs");
        if (g.wants("lhs")) set_summed(g, "lhs", lhs(g.out_grad(), all_lhs, all_rhs));
        if (g.wants("rhs")) set_summed(g, "rhs", rhs(g.out_grad(), all_lhs, all_rhs));
      },
      precision);
}

void add_choices(OpRegistry& registry) {
  add_choice<"broadcast_maximum">(registry, "max(lhs, rhs), element by element.", maximum_lhs_grad, maximum_rhs_grad);
  add_choice<"broadcast_minimum">(registry, "min(lhs, rhs), element by element.", minimum_lhs_grad, minimum_rhs_grad);
  add_choice<"broadcast_hypot">(registry, "√(lhs² + rhs²), element by element.", hypot_lhs_grad, hypot_rhs_grad,
                                Precision::full);
  add_choice<"broadcast_mod">(
      registry, "Remainder of lhs / rhs with the sign of rhs: lhs - rhs · floor(lhs / rhs); 0 where rhs is 0.",
      mod_lhs_grad, mod_rhs_grad);
  add_comparison<"broadcast_logical_and">(registry, "Logical and: 1 where both inputs are nonzero, else 0.");
  add_comparison<"broadcast_logical_or">(registry, "Logical or: 1 where at least one input is nonzero, else 0.");
  add_comparison<"broadcast_logical_xor">(registry,
                                          "Logical exclusive or: 1 where exactly one input is nonzero, else 0.");
}

// ---- broadcast_to, broadcast_axis, broadcast_like -------------------------------------------------------------------

// Broadcasts axes of extent 1; `wanted` holds an extent or unknown_dim for each axis.
void infer_spread(Shapes& s, const Shape& data, const Shape& wanted) {
  Shape shape = data;
  for (int axis = 0; axis < data.rank(); ++axis) {
    if (wanted[axis] == unknown_dim || data[axis] == unknown_dim) {
      if (wanted[axis] != unknown_dim) shape[axis] = wanted[axis];
      continue;
    }
    require(data[axis] == wanted[axis] || data[axis] == 1, s.where(), " only axes of extent 1 can be spread: ", data,
            " to ", wanted);
    shape[axis] = wanted[axis];
  }
  s.output().meet(shape);
}

OpDef define(Op<BroadcastTo> op) {
  return op.doc("Broadcasts an array to a shape by repeating axes of extent 1.")
      .memory_bound()
      .param(&BroadcastTo::shape, "shape",
             "shape of the result, with as many numbers as data has axes; 0 keeps the extent of data", each_at_least(0))
      .infer_shape([](const BroadcastTo& p, Shapes& s) {
        const auto data = s["data"];
        if (!data.rank_known()) return;
        require(data.rank() == static_cast<int>(p.shape.size()), s.where(),
                " shape must have as many numbers as data has axes: shape ", print(p.shape), ", data ", data.get());
        Shape wanted(p.shape);
        for (int axis = 0; axis < wanted.rank(); ++axis)
          if (wanted[axis] == 0) wanted[axis] = data[axis];
        infer_spread(s, data, wanted);
      })
      .gradient([](const BroadcastTo&, Grad& g) { set_summed(g, "data", g.out_grad()); });
}

OpDef define(Op<BroadcastAxis> op) {
  return op.doc("Broadcasts axes of extent 1 to the given sizes.")
      .aliases({"broadcast_axes"})
      .param(&BroadcastAxis::axis, "axis", "axis or axes of extent 1 to broadcast; negative ones count from the end")
      .param(&BroadcastAxis::size, "size", "extent of each of these axes in the result", each_at_least(0))
      .check([](BroadcastAxis& p) {
        require(p.axis.size() == p.size.size(), "axis and size must be equally long: axis ", print(p.axis), ", size ",
                print(p.size));
      })
      .infer_shape([](const BroadcastAxis& p, Shapes& s) {
        const auto data = s["data"];
        if (!data.rank_known()) return;
        Shape wanted = data;
        for (size_t i = 0; i < p.axis.size(); ++i) {
          const int axis = data.get().axis(p.axis[i], s.where());
          require(data[axis] == 1 || data[axis] == unknown_dim, s.where(), " axis ", axis, " must have extent 1: data ",
                  data.get());
          wanted[axis] = p.size[i];
        }
        infer_spread(s, data, wanted);
      })
      .gradient([](const BroadcastAxis&, Grad& g) { set_summed(g, "data", g.out_grad()); });
}

OpDef define(Op<BroadcastLike> op) {
  return op.doc("Broadcasts lhs to the shape of rhs by repeating axes of extent 1; only the shape of rhs is read.")
      .param(&BroadcastLike::lhs_axes, "lhs_axes", "axes of lhs to broadcast; None: all")
      .param(&BroadcastLike::rhs_axes, "rhs_axes", "axes of rhs whose extents they get, as many as lhs_axes")
      .inputs({"lhs", "rhs"})
      .shape_only({"rhs"})
      .check([](BroadcastLike& p) {
        require(p.lhs_axes.has_value() == p.rhs_axes.has_value() &&
                    (!p.lhs_axes || p.lhs_axes->size() == p.rhs_axes->size()),
                "lhs_axes and rhs_axes must be equally long");
      })
      .infer_shape([](const BroadcastLike& p, Shapes& s) {
        const auto lhs = s["lhs"], rhs = s["rhs"];
        if (!lhs.rank_known() || !rhs.rank_known()) return;
        Shape wanted = lhs;
        if (!p.lhs_axes) {
          require(lhs.rank() == rhs.rank(), s.where(), " lhs and rhs must have as many axes: lhs ", lhs.get(), ", rhs ",
                  rhs.get());
          wanted = rhs;
        } else {
          for (size_t i = 0; i < p.lhs_axes->size(); ++i)
            wanted[lhs.get().axis((*p.lhs_axes)[i], s.where())] = rhs[rhs.get().axis((*p.rhs_axes)[i], s.where())];
        }
        infer_spread(s, lhs, wanted);
      })
      .infer_type([](const BroadcastLike&, Types& t) {
        t["lhs"].meet(t.output().get());
        t.output().meet(t["lhs"].get());
      })
      .gradient([](const BroadcastLike&, Grad& g) { set_summed(g, "lhs", g.out_grad()); });
}

// ---- For gradients --------------------------------------------------------------------------------------------------

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
  add<"broadcast_power">(
      registry, "lhs raised to the power rhs, element by element.", {},
      [](Grad& g) {
        if (g.wants("lhs")) set_summed(g, "lhs", power_lhs_grad(g.out_grad(), spread(g, "lhs"), spread(g, "rhs")));
        if (g.wants("rhs")) set_summed(g, "rhs", power_rhs_grad(g.out_grad(), spread(g, "lhs"), spread(g, "rhs")));
      },
      Precision::full);
  add_comparison<"broadcast_equal">(registry, "1 where lhs = rhs, else 0.");
  add_comparison<"broadcast_not_equal">(registry, "1 where lhs ≠ rhs, else 0.");
  add_comparison<"broadcast_greater">(registry, "1 where lhs > rhs, else 0.");
  add_comparison<"broadcast_greater_equal">(registry, "1 where lhs ≥ rhs, else 0.");
  add_comparison<"broadcast_lesser">(registry, "1 where lhs < rhs, else 0.");
  add_comparison<"broadcast_lesser_equal">(registry, "1 where lhs ≤ rhs, else 0.");
  add_choices(registry);
  add<BroadcastTo>(registry, "broadcast_to", define);
  add<BroadcastAxis>(registry, "broadcast_axis", define);
  add<BroadcastLike>(registry, "broadcast_like", define);
  add_internal<SumToLike>(registry, "_sum_to_like", define);
  add_internal<SpreadLike>(registry, "_spread_like", define);
}

}  // namespace symbind
