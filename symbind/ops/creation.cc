#include "symbind/ops/creation.h"

#include "symbind/graph/define.h"

namespace symbind {
namespace {

template <class P>
OpDef creation(Op<P> op) {
  return op.param(&P::shape, "shape", "the shape, where 0 is to be inferred", each_at_least(0))
      .param(&P::ctx, "ctx", "the context to compute on, as text: \"cpu(0)\"")
      .param(&P::dtype, "dtype", "the type")
      .inputs({})
      .infer_shape([](const P& p, Shapes& s) { s.output().meet(Shape::from_public(p.shape)); })
      .infer_type([](const P& p, Types& t) { t.output().meet(p.dtype); });
}

}  // namespace

void register_creation(OpRegistry& registry) {
  Op<Zeros> zeros_op("_zeros");
  zeros_op.doc("An array of zeros.");
  registry.add(creation(zeros_op), typeid(Zeros));
  Op<Ones> ones_op("_ones");
  ones_op.doc("An array of ones.");
  registry.add(creation(ones_op), typeid(Ones));
}

}  // namespace symbind
