#include "symbind/ops/storage.h"

#include "symbind/graph/define.h"
#include "symbind/ops/cast.h"
#include "symbind/ops/creation.h"
#include "symbind/ops/elementwise.h"
#include "symbind/ops/gather.h"
#include "symbind/ops/reduce.h"
#include "symbind/ops/reshape.h"

namespace symbind {
namespace {

OpDef define(Op<CastStorage> op) {
  return op
      .doc(
          "The identity. MXNet converts between dense and sparse arrays with it; arrays are dense here, whatever stype "
          "says.")
      .param(&CastStorage::stype, "stype", "the kind of storage, which changes no values",
             one_of({"csr", "default", "row_sparse"}))
      .view()
      .gradient([](const CastStorage&, Grad& g) { g.set("data", g.out_grad()); });
}

OpDef define(Op<SparseRetain> op) {
  return op.doc("The rows of data whose numbers are in indices; all other rows are 0.")
      .inputs({"data", "indices"})
      .infer_shape([](const SparseRetain&, Shapes& s) {
        s["indices"].meet(Shape::of_rank(1));
        s["data"].meet(s.output());
        require(!s["data"].rank_known() || s["data"].rank() > 0, s.where(), " data must have rows");
      })
      .infer_type([](const SparseRetain&, Types& t) {
        t["data"].meet(t.output());
        t.output().meet(t["data"]);
      })
      .gradient([](const SparseRetain&, Grad& g) { g.set("data", sparse_retain(g.out_grad(), g.input("indices"))); });
}

OpDef define(Op<CountNonzero> op) {
  return op
      .doc(
          "The number of elements that are not 0, as int64: of the whole array, with shape (1,), or of each column "
          "(axis 0) or row (axis 1) of a matrix.")
      .param(&CountNonzero::axis, "axis", "0: count along each column, 1: along each row; None: in the whole array")
      .check([](CountNonzero& p) {
        require(!p.axis || *p.axis == 0 || *p.axis == 1, "axis must be 0, 1 or None: axis ", p.axis.value_or(0));
      })
      .infer_shape([](const CountNonzero& p, Shapes& s) {
        if (!p.axis) return s.output().meet(Shape{1});
        s["data"].meet(Shape::of_rank(2));
        s.output().meet(Shape{s["data"][*p.axis == 0 ? 1 : 0]});
        s["data"].meet_dim(*p.axis == 0 ? 1 : 0, s.output()[0]);
      })
      .infer_type([](const CountNonzero&, Types& t) { t.output().meet(DType::int64); })
      .gradient([](const CountNonzero&, Grad&) {});
}

OpDef define(Op<SquareSum> op) {
  return op.doc("Sum of the squares of the elements over the given axes.")
      .precision(Precision::full)
      .param(&SquareSum::axis, "axis", "axis or axes to sum over; negative ones count from the end; None or (): all")
      .param(&SquareSum::keepdims, "keepdims", "keep the summed axes in the result, with extent 1")
      .param(&SquareSum::exclude, "exclude", "sum over all axes but the given ones")
      .infer_shape([](const SquareSum& p, Shapes& s) {
        op_of<Sum>().infer_shape(std::make_shared<Sum>(Sum{p.axis, p.keepdims, p.exclude}).get(), s);
      })
      .gradient([](const SquareSum& p, Grad& g) {
        SumGrad spread;
        spread.axis = p.axis;
        spread.keepdims = p.keepdims;
        spread.exclude = p.exclude;
        const Symbol twice = elemwise_mul(sum_grad(g.out_grad(), g.input("data"), spread), g.input("data")) * 2;
        g.set("data", cast_like(twice, g.input("data")));
      });
}

OpDef define(Op<ZerosWithoutDtype> op) {
  return op.doc("An array of zeros whose type, and the extents that shape gives as 0, are inferred from the network.")
      .param(&ZerosWithoutDtype::shape, "shape", "shape of the result; a 0 is inferred", each_at_least(0))
      .param(&ZerosWithoutDtype::ctx, "ctx", "accepted for compatibility and ignored")
      .param(&ZerosWithoutDtype::dtype, "dtype", "number of the element type in MXNet's files; -1: inferred")
      .check([](ZerosWithoutDtype& p) {
        require((p.dtype >= -1 && p.dtype <= 7) || p.dtype == 12, "dtype must be a type number: ", p.dtype);
      })
      .inputs({})
      .infer_shape([](const ZerosWithoutDtype& p, Shapes& s) { s.output().meet(Shape::from_public(p.shape)); })
      .infer_type([](const ZerosWithoutDtype& p, Types& t) { t.output().meet(static_cast<DType>(p.dtype)); })
      .gradient([](const ZerosWithoutDtype&, Grad&) {});
}

OpDef define(Op<OnehotEncode> op) {
  return op
      .doc(
          "One-hot vectors in the shape of rhs, (rows, classes): row i is 1 at the index lhs[i] and 0 elsewhere. Of "
          "rhs nothing else is read.")
      .inputs({"lhs", "rhs"})
      .shape_only({"rhs"})
      .infer_shape([](const OnehotEncode&, Shapes& s) {
        s["rhs"].meet(Shape::of_rank(2));
        s["lhs"].meet(Shape{s["rhs"][0]});
        s["rhs"].meet_dim(0, s["lhs"][0]);
        s["rhs"].meet(s.output());
      })
      .infer_type([](const OnehotEncode&, Types& t) {
        t["rhs"].meet(t.output());
        t.output().meet(t["rhs"]);
      })
      .gradient([](const OnehotEncode&, Grad&) {});
}

}  // namespace

// The retained rows are selected by a one-hot vector per index.
Symbol network_of(const SparseRetain&, const ComposedInputs& in) {
  const int64_t rows = in.shapes[0][0];
  if (rows == 0 || in.shapes[1].size() == 0) return zeros_like(in[0]);
  const Symbol kept = max(one_hot(in[1], {.depth = rows}), {.axis = Tuple{0}});
  return where(kept, in[0], zeros_like(in[0]));
}

Symbol network_of(const CountNonzero& p, const ComposedInputs& in) {
  const Symbol counted = cast(in[0] != 0.0, {.dtype = DType::int64});
  if (p.axis) return sum(counted, {.axis = Tuple{*p.axis}});
  return reshape(sum(counted), {.shape = {1}});
}

Symbol network_of(const SquareSum& p, const ComposedInputs& in) {
  return sum(square(in[0]), {p.axis, p.keepdims, p.exclude});
}

Symbol network_of(const ZerosWithoutDtype&, const ComposedInputs& in) {
  const Shape& shape = in.output_shapes[0];
  return make_zeros({.shape = Tuple(shape.begin(), shape.end()), .dtype = in.output_types[0]});
}

Symbol network_of(const OnehotEncode&, const ComposedInputs& in) {
  return one_hot(in[0], {.depth = in.shapes[1][1], .dtype = in.output_types[0]});
}

void register_storage(OpRegistry& registry) {
  add<CastStorage>(registry, "cast_storage", define);
  add<SparseRetain>(registry, "_sparse_retain", define);
  add<CountNonzero>(registry, "_contrib_getnnz", define);
  add<SquareSum>(registry, "_square_sum", define);
  add<ZerosWithoutDtype>(registry, "_zeros_without_dtype", define);
  add<OnehotEncode>(registry, "_onehot_encode", define);
}

}  // namespace symbind
