#include "symbind/ops/pool_indices.h"

#include "symbind/ops/floating.h"
#include "symbind/ops/pool_fields.h"

namespace symbind {
namespace {

template <class P>
Op<P>& with_fields(Op<P>& op) {
  return with_pooling_fields(op).check([](P& p) {
    complete(p);
    require(p.pool_type == "max", "only maxima have indices: pool_type ", p.pool_type);
  });
}

void require_indices(const Pooling& p, const Shape& data, const Shape& output, const std::string& where) {
  require(has_pooling_indices(size_of(p, data, output)), where, " the indices of so large a window need more than ",
          DType::uint8, ": data ", data);
}

OpDef define(Op<PoolingIndices> op) {
  return with_fields(op)
      .doc("Max pooling that also returns the index of each maximum in its window.")
      .outputs({"output", "indices"})
      .infer_shape([](const PoolingIndices& p, Shapes& s) {
        infer_pooling(p, s);
        s.output(1).meet(s.output(0));
        if (s["data"].known()) require_indices(p, s["data"], s.output(0), s.where());
      })
      .infer_type([](const PoolingIndices&, Types& t) {
        t["data"].meet(t.output(0));
        t.output(0).meet(t["data"]);
        t.output(1).meet(DType::uint8);
        require_floating(t, "data", t["data"]);
      });
}

OpDef define_grad(Op<PoolingIndicesGrad> op) {
  return with_fields(op)
      .inputs({"out_grad", "indices", "like"})
      .shape_only({"like"})
      .outputs({"data_grad"})
      .infer_shape([](const PoolingIndicesGrad& p, Shapes& s) {
        s.output().meet(s["like"]);
        s["indices"].meet(s["out_grad"]);
        if (s["like"].known() && s["out_grad"].known()) require_indices(p, s["like"], s["out_grad"], s.where());
      })
      .shapes_of<Pooling>()
      .infer_type([](const PoolingIndicesGrad&, Types& t) {
        t["like"].meet(t["out_grad"]);
        t.output().meet(t["out_grad"]);
        t["indices"].meet(DType::uint8);
        require_floating(t, "out_grad", t["out_grad"]);
      });
}

}  // namespace

bool has_pooling_indices(const PoolingSize& size) {
  return static_cast<double>(size.kernel[0]) * static_cast<double>(size.kernel[1]) *
             static_cast<double>(size.kernel[2]) <
         no_pooling_index;
}

void register_pool_indices(OpRegistry& registry) {
  add_internal<PoolingIndices>(registry, "_Pooling_Indices", define);
  add_internal<PoolingIndicesGrad>(registry, "_backward_Pooling_Indices", define_grad);
}

}  // namespace symbind
