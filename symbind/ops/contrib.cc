#include "symbind/ops/contrib.h"

#include <cmath>

#include "symbind/graph/define.h"
#include "symbind/ops/cast.h"
#include "symbind/ops/elementwise.h"
#include "symbind/ops/floating.h"
#include "symbind/ops/math.h"

namespace symbind {
namespace {

// ---- Expressions ----------------------------------------------------------------------------------------------------

OpDef define(Op<Quadratic> op) {
  return op.doc("a·x² + b·x + c for each element.")
      .param(&Quadratic::a, "a", "coefficient of x²")
      .param(&Quadratic::b, "b", "coefficient of x")
      .param(&Quadratic::c, "c", "constant term")
      .memory_bound()
      .gradient([](const Quadratic& p, Grad& g) {
        g.set("data", elemwise_mul(g.out_grad(), quadratic(g.input("data"), {.b = 2 * p.a, .c = p.b})));
      });
}

OpDef define(Op<DivSqrtDim> op) {
  return op.doc("x / √n for each element, where n is the extent of the last axis.")
      .memory_bound()
      .infer_shape([](const DivSqrtDim&, Shapes& s) {
        same_shape(s);
        require(!s["data"].rank_known() || s["data"].rank() > 0, s.where(), " data must have an axis");
      })
      .gradient([](const DivSqrtDim&, Grad& g) { g.set("data", div_sqrt_dim(g.out_grad())); });
}

template <class P>
Op<P>& straight_through(Op<P>& op, const std::string& doc) {
  return op.doc(doc + " In backward the gradient passes through unchanged.")
      .memory_bound()
      .gradient([](const P&, Grad& g) { g.set("data", g.out_grad()); });
}
OpDef define(Op<RoundSte> op) {
  return straight_through(op, "Each element rounded to the nearest integer; halves are rounded away from zero.");
}
OpDef define(Op<SignSte> op) { return straight_through(op, "Sign of each element: 1, 0 or -1."); }

// ---- Identities -----------------------------------------------------------------------------------------------------

OpDef define(Op<GradientMultiplier> op) {
  return op.doc("The identity in forward; in backward the gradient is multiplied by scalar.")
      .param(&GradientMultiplier::scalar, "scalar", "factor of the gradient; a negative one reverses it")
      .param(&GradientMultiplier::is_int, "is_int", "accepted for compatibility and ignored")
      .view()
      .gradient([](const GradientMultiplier& p, Grad& g) {
        g.set("data", cast_like(g.out_grad() * p.scalar, g.input("data")));
      });
}

OpDef define(Op<IdentityLike> op) {
  return op.doc("The identity of lhs, which has the shape of rhs; of rhs nothing else is read.")
      .inputs({"lhs", "rhs"})
      .shape_only({"rhs"})
      .view()
      .infer_type([](const IdentityLike&, Types& t) {
        t["lhs"].meet(t.output());
        t.output().meet(t["lhs"]);
        t["rhs"].default_to(at_least_float32(t.output()));
      })
      .gradient([](const IdentityLike&, Grad& g) { g.set("lhs", g.out_grad()); });
}

// ---- Numbers of elements --------------------------------------------------------------------------------------------

OpDef define(Op<ArangeLike> op) {
  return op
      .doc(
          "start, start + step, … each repeat times: in the shape of data, or with axis a vector as long as data is "
          "along this axis. The type is that of data.")
      .precision(Precision::full)
      .param(&ArangeLike::start, "start", "first number")
      .param(&ArangeLike::step, "step", "difference between neighbouring numbers")
      .param(&ArangeLike::repeat, "repeat",
             "how often each number is repeated; with a negative repeat the numbers count downwards")
      .check([](ArangeLike& p) { require(p.repeat != 0, "repeat must not be 0"); })
      .param(&ArangeLike::ctx, "ctx", "accepted for compatibility and ignored")
      .param(&ArangeLike::axis, "axis", "axis whose extent is the length; None: the shape of data")
      .shape_only({"data"})
      .infer_shape([](const ArangeLike& p, Shapes& s) {
        auto data = s["data"];
        if (!p.axis) return same_shape(s);
        s.output().meet(Shape::of_rank(1));
        if (!data.rank_known()) return;
        const int axis = data.get().axis(*p.axis, s.where());
        s.output().meet_dim(0, data[axis]);
        data.meet_dim(axis, s.output()[0]);
      })
      .gradient([](const ArangeLike&, Grad&) {});
}

OpDef define(Op<IndexArray> op) {
  return op
      .doc(
          "The index of each element of data, as int64: the output has the shape of data and a last axis with the "
          "index along each axis, or along those that axes lists.")
      .param(&IndexArray::axes, "axes", "axes whose indices are returned, in this order; None: all")
      .shape_only({"data"})
      .infer_shape([](const IndexArray& p, Shapes& s) {
        const Shape& data = s["data"];
        if (!data.rank_known()) return;
        require(data.rank() < Shape::max_rank, s.where(), " data has too many axes: ", data);
        Shape result = data;
        if (p.axes) {
          require(p.axes->size() <= Shape::max_rank, s.where(), " axes lists ", p.axes->size(), " axes; at most ",
                  Shape::max_rank, " are possible");
          for (const int64_t axis : *p.axes) data.axis(axis, s.where());
        }
        result.push_back(p.axes ? static_cast<int64_t>(p.axes->size()) : data.rank());
        s.output().meet(result);
        s["data"].meet(s.output().get().slice(0, data.rank()));
      })
      .infer_type([](const IndexArray&, Types& t) { t.output().meet(DType::int64); })
      .gradient([](const IndexArray&, Grad&) {});
}

// Integers are computed in float32, as in MXNet.
template <class Function>
Symbol in_floating(const ComposedInputs& in, Function function) {
  if (is_floating(in.types[0])) return function(in[0]);
  return cast(function(cast(in[0], {.dtype = DType::float32})), {.dtype = in.types[0]});
}

}  // namespace

Symbol network_of(const Quadratic& p, const ComposedInputs& in) {
  return in_floating(in, [&](const Symbol& x) { return (x * p.a + p.b) * x + p.c; });
}
Symbol network_of(const DivSqrtDim&, const ComposedInputs& in) {
  const double root = std::sqrt(static_cast<double>(in.shapes[0][-1]));
  return in[0] / root;  // integers are divided by the truncated root
}

Symbol network_of(const RoundSte&, const ComposedInputs& in) { return round(in[0]); }
Symbol network_of(const SignSte&, const ComposedInputs& in) { return sign(in[0]); }

void register_contrib(OpRegistry& registry) {
  add<Quadratic>(registry, "_contrib_quadratic", define);
  add<DivSqrtDim>(registry, "_contrib_div_sqrt_dim", define);
  add<RoundSte>(registry, "_contrib_round_ste", define);
  add<SignSte>(registry, "_contrib_sign_ste", define);
  add<GradientMultiplier>(registry, "_contrib_gradientmultiplier", define);
  add<IdentityLike>(registry, "_identity_with_attr_like_rhs", define);
  add<ArangeLike>(registry, "_contrib_arange_like", define);
  add<IndexArray>(registry, "_contrib_index_array", define);
}

}  // namespace symbind
