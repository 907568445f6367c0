#include "symbind/ops/cumsum.h"

#include "symbind/graph/define.h"

namespace symbind {
namespace {

template <class P>
Op<P>& with_fields(Op<P>& op) {
  return op
      .param(&CumSum::axis, "axis", "axis to sum along; negative ones count from the end; None: the flattened array")
      .param(&CumSum::dtype, "dtype", "element type of the result; None: that of the input");
}

OpDef define(Op<CumSum> op) {
  return with_fields(op)
      .doc(
          "Cumulative sum along an axis: each element of the result is the sum of all elements of the input up to it. "
          "The result has the shape of the input, or one axis when axis is None.")
      .precision(Precision::full)
      .aliases({"cumsum"})
      .inputs({"a"})
      .infer_shape([](const CumSum& p, Shapes& s) {
        if (p.axis) {
          s["a"].meet(s.output());
          if (!s["a"].rank_known()) return;
          s["a"].get().axis(*p.axis, s.where());
        } else if (s["a"].known()) {
          s.output().meet({s["a"].get().size()});
        }
      })
      .infer_type([](const CumSum& p, Types& t) {
        if (p.dtype)
          t.output().meet(*p.dtype);
        else
          same_type(t);
      })
      .gradient([](const CumSum& p, Grad& g) { g.set("a", cumsum_grad(g.out_grad(), g.input("a"), {p})); });
}

OpDef define(Op<CumSumGrad> op) {
  return with_fields(op)
      .inputs({"out_grad", "a"})
      .shape_only({"a"})
      .infer_shape([](const CumSumGrad&, Shapes& s) { s.output().meet(s["a"].get()); })
      .shapes_of<CumSum>()
      .infer_type([](const CumSumGrad&, Types& t) { t.output().meet(t["a"]); })
      .types_of<CumSum>();
}

}  // namespace

void register_cumsum(OpRegistry& registry) {
  add<CumSum>(registry, "_np_cumsum", define);
  add_internal<CumSumGrad>(registry, "_backward_np_cumsum", define);
}

}  // namespace symbind
