#include "symbind/ops/finite.h"

#include "symbind/graph/define.h"

namespace symbind {
namespace {

// A test of arrays of any types, without a gradient.
template <class P>
Op<P>& answers(Op<P>& op, DType type) {
  return op.infer_shape([](const P&, Shapes& s) { s.output().meet(Shape{1}); })
      .infer_type([type](const P&, Types& t) { t.output().meet(type); })
      .gradient([](const P&, Grad&) {});
}

template <class P>
Op<P>& add_init_output(Op<P>& op) {
  return op
      .param(&P::init_output, "init_output",
             "True: the answer is about these arrays alone. False, which would also take what the output held, is an "
             "error: multiply the answers instead")
      .check([](P& p) {
        require(p.init_output, "init_output must be True: multiply the answers of several calls instead");
      });
}

OpDef define(Op<AllFinite> op) {
  op.doc("1 where every element is a finite number, else 0; the output has the shape (1,).");
  return answers(add_init_output(op), DType::float32);
}

OpDef define(Op<MultiAllFinite> op) {
  op.doc("1 where every element of all arrays is a finite number, else 0; the output has the shape (1,).")
      .param(&MultiAllFinite::num_arrays, "num_arrays", "number of input arrays", at_least(1))
      .variadic(&MultiAllFinite::num_arrays, "num_arrays")
      .inputs(&MultiAllFinite::num_arrays, numbered("array_"));
  return answers(add_init_output(op), DType::float32);
}

OpDef define(Op<AllClose> op) {
  op.doc(
        "1 where |a - b| <= atol + rtol · |b| holds for all elements of two arrays of one shape, else 0; the output "
        "has the shape (1,).")
      .param(&AllClose::rtol, "rtol", "relative tolerance")
      .param(&AllClose::atol, "atol", "absolute tolerance")
      .param(&AllClose::equal_nan, "equal_nan", "NaN is close to NaN")
      .inputs({"a", "b"});
  return answers(op, DType::uint8).infer_shape([](const AllClose&, Shapes& s) {
    s["a"].meet(s["b"]);
    s.output().meet(Shape{1});
  });
}

}  // namespace

void register_finite(OpRegistry& registry) {
  add<AllFinite>(registry, "all_finite", define);
  add<MultiAllFinite>(registry, "multi_all_finite", define);
  add<AllClose>(registry, "_contrib_allclose", define);
}

}  // namespace symbind
