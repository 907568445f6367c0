// None of these has a gradient: they are steps, or read no data at all.
#include "symbind/ops/indices.h"

#include <algorithm>

#include "symbind/graph/define.h"

namespace symbind {
namespace {

OpDef define(Op<ShapeArray> op) {
  return op.doc("The shape of an array, as a vector of int64.")
      .shape_only({"data"})
      .infer_shape([](const ShapeArray&, Shapes& s) {
        if (s["data"].rank_known()) s.output().meet({s["data"].rank()});
      })
      .infer_type([](const ShapeArray&, Types& t) { t.output().meet(DType::int64); });
}

OpDef define(Op<SizeArray> op) {
  return op.doc("The number of elements of an array, as int64 of shape (1).")
      .shape_only({"data"})
      .infer_shape([](const SizeArray&, Shapes& s) { s.output().meet({1}); })
      .infer_type([](const SizeArray&, Types& t) { t.output().meet(DType::int64); });
}

template <class P>
Op<P>& with_shape(Op<P>& op) {
  return op
      .param(&P::shape, "shape",
             "shape of the array that is indexed; the first extent may be -1, since it does not matter")
      .check([](P& p) {
        require(!p.shape.empty(), "shape must have an axis: ()");
        // Factors may be any number, divisors may not.
        if (!std::is_same_v<P, RavelMultiIndex> &&
            std::any_of(p.shape.begin() + 1, p.shape.end(), [](int64_t extent) { return extent < 1; }))
          fail("extents after the first must be at least 1: shape ", print(p.shape));
      });
}

OpDef define(Op<RavelMultiIndex> op) {
  return with_shape(op)
      .doc("Converts multi-dimensional indices, the columns of data (axes, n), to flat row-major indices (n).")
      .aliases({"ravel_multi_index"})
      .precision(Precision::full)
      .infer_shape([](const RavelMultiIndex& p, Shapes& s) {
        s["data"].meet({static_cast<int64_t>(p.shape.size()), unknown_dim});
        s.output().meet({s["data"][1]});
        s["data"].meet_dim(1, s.output()[0]);
      });
}

OpDef define(Op<UnravelIndex> op) {
  return with_shape(op)
      .doc("Converts flat row-major indices (n) to multi-dimensional ones, the columns of the result (axes, n).")
      .aliases({"unravel_index"})
      .precision(Precision::full)
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
