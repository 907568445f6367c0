// None of these has a gradient: they are steps, or read no data at all.
#include "symbind/ops/indices.h"

#include "symbind/graph/define.h"

namespace symbind {
namespace {

OpDef define(Op<ShapeArray> op) {
  return op.doc("The extents of an array, as int64.")
      .shape_only({"data"})
      .infer_shape([](const ShapeArray&, Shapes& s) {
        if (s["data"].rank_known()) s.output().meet({s["data"].rank()});
      })
      .infer_type([](const ShapeArray&, Types& t) { t.output().meet(DType::int64); });
}

OpDef define(Op<SizeArray> op) {
  return op.doc("The number of elements of an array, as int64.")
      .shape_only({"data"})
      .infer_shape([](const SizeArray&, Shapes& s) { s.output().meet({1}); })
      .infer_type([](const SizeArray&, Types& t) { t.output().meet(DType::int64); });
}

template <class P>
Op<P>& with_shape(Op<P>& op) {
  return op.param(&P::shape, "shape", "the extents of the array the places are in; the first may be -1")
      .check([](P& p) {
        require(!p.shape.empty(), "shape must have an axis: ()");
        for (size_t i = 1; i < p.shape.size(); ++i)
          require(p.shape[i] >= 1, "shape must hold extents of at least 1 behind the first: ", print(p.shape));
      });
}

OpDef define(Op<RavelMultiIndex> op) {
  return with_shape(op)
      .doc("Places in an array, a column each, as numbers of elements in row-major order.")
      .aliases({"ravel_multi_index"})
      .infer_shape([](const RavelMultiIndex& p, Shapes& s) {
        s["data"].meet({static_cast<int64_t>(p.shape.size()), unknown_dim});
        s.output().meet({s["data"][1]});
        s["data"].meet_dim(1, s.output()[0]);
      });
}

OpDef define(Op<UnravelIndex> op) {
  return with_shape(op)
      .doc("Numbers of elements in row-major order as places in an array, a column each.")
      .aliases({"unravel_index"})
      .infer_shape([](const UnravelIndex& p, Shapes& s) {
        s["data"].meet(Shape::of_rank(1));
        s.output().meet({static_cast<int64_t>(p.shape.size()), s["data"][0]});
        s["data"].meet_dim(0, s.output()[1]);
      });
}

}  // namespace

void register_indices(OpRegistry& registry) {
  add<ShapeArray>(registry, "shape_array", define);
  add<SizeArray>(registry, "size_array", define);
  add<RavelMultiIndex>(registry, "_ravel_multi_index", define);
  add<UnravelIndex>(registry, "_unravel_index", define);
}

}  // namespace symbind
