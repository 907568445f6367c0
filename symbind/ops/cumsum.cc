#include "symbind/ops/cumsum.h"

#include "symbind/graph/define.h"

namespace symbind {
namespace {

template <class P>
Op<P>& with_fields(Op<P>& op) {
  return op.param(&CumSum::axis, "axis", "the axis to sum along, from either end; None: the array flattened")
      .param(&CumSum::dtype, "dtype", "type of the result; None: that of the data");
}

OpDef define(Op<CumSum> op) {
  return with_fields(op)
      .doc("The sum of all elements up to each, along an axis or over the whole array.")
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
