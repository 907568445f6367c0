#include "symbind/ops/scatter.h"

#include "symbind/graph/define.h"

namespace symbind {
namespace {

// All arrays but the indices have one type.
void one_type(Types& t, size_t indices) {
  for (int round = 0; round < 2; ++round)
    for (size_t i = 0; i < t.inputs(); ++i) {
      if (i == indices) continue;
      t.input(i).meet(t.output());
      t.output().meet(t.input(i));
    }
}

// The shape of the values that replace slices of an array: with nd one slice per column of the indices, else one per
// index.
Shape values_shape(Shapes& s, const Shape& array, const Shape& indices, bool nd) {
  if (!nd) return array.with(0, indices[0]);
  require(indices.rank() > 0 && indices[0] <= array.rank(), s.where(),
          " indices must have a row per leading axis of the array: indices ", indices, ", array ", array);
  Shape values = indices.slice(1, indices.rank());
  const auto rows = static_cast<int>(indices[0]);
  require(values.rank() + array.rank() - rows <= Shape::max_rank, s.where(), " too many axes: indices ", indices,
          ", array ", array);
  for (int axis = rows; axis < array.rank(); ++axis) values.push_back(array[axis]);
  return values;
}

OpDef define(Op<IndexCopy> op) {
  return op
      .doc(
          "old_tensor with row index_vector[i] replaced by row i of new_tensor. Where an index is there several times "
          "the last one counts; an index outside of old_tensor is an error.")
      .precision(Precision::widest)
      .inputs({"old_tensor", "index_vector", "new_tensor"})
      .infer_shape([](const IndexCopy&, Shapes& s) {
        auto old = s["old_tensor"], index = s["index_vector"], fresh = s["new_tensor"];
        index.meet(Shape::of_rank(1));
        old.meet(s.output());
        const int rank = old.rank_known() ? old.rank() : fresh.rank();
        if (rank < 0) return;
        require(rank > 0, s.where(), " old_tensor must have rows");
        old.meet(Shape::of_rank(rank));
        fresh.meet(old.get().with(0, index[0]));
        old.meet(fresh.get().with(0, unknown_dim));
        index.meet_dim(0, fresh[0]);
        s.output().meet(old.get());
      })
      .infer_type([](const IndexCopy&, Types& t) { one_type(t, 1); })
      .gradient([](const IndexCopy&, Grad& g) {
        const Symbol grads = replace_grad(g.out_grad(), g.input("index_vector"), g.input("new_tensor"), {.nd = false});
        g.set("old_tensor", grads[0]);
        g.set("new_tensor", grads[1]);
      });
}

OpDef define(Op<ScatterSetNd> op) {
  return op
      .doc(
          "lhs with lhs[indices[0, i], indices[1, i], …] replaced by rhs[i]: indices has a row per leading axis of "
          "lhs. Where an index is there several times the last one counts; an index outside of lhs is an error.")
      .precision(Precision::widest)
      .param(&ScatterSetNd::shape, "shape", "shape of lhs", each_at_least(0))
      .inputs({"lhs", "rhs", "indices"})
      .infer_shape([](const ScatterSetNd& p, Shapes& s) {
        auto lhs = s["lhs"], rhs = s["rhs"], indices = s["indices"];
        lhs.meet(Shape(p.shape.get()));
        lhs.meet(s.output());
        require(!indices.rank_known() || indices.rank() > 0, s.where(), " indices must have a row per axis");
        if (indices.rank_known() && indices[0] != unknown_dim) rhs.meet(values_shape(s, lhs, indices, true));
      })
      .infer_type([](const ScatterSetNd&, Types& t) { one_type(t, 2); })
      .gradient([](const ScatterSetNd&, Grad& g) {
        const Symbol grads = replace_grad(g.out_grad(), g.input("indices"), g.input("rhs"), {.nd = true});
        g.set("lhs", grads[0]);
        g.set("rhs", grads[1]);
      });
}

OpDef define(Op<ReplaceGrad> op) {
  return op.param(&ReplaceGrad::nd, "nd", "whether the indices have a row per axis")
      .inputs({"out_grad", "indices", "like"})
      .shape_only({"like"})
      .outputs({"old_grad", "new_grad"})
      .infer_shape([](const ReplaceGrad& p, Shapes& s) {
        const Shape &array = s["out_grad"], &indices = s["indices"];
        require(!array.rank_known() || array.rank() > 0, s.where(), " out_grad must have rows");
        if (!p.nd) s["indices"].meet(Shape::of_rank(1));
        if (array.known() && indices.known()) s["like"].meet(values_shape(s, array, indices, p.nd));
        s.output(0).meet(array);
        s.output(1).meet(s["like"].get());
      })
      .infer_type([](const ReplaceGrad&, Types& t) {
        t.output(0).meet(t["out_grad"]);
        t.output(1).meet(t["out_grad"]);
      });
}

}  // namespace

void register_scatter(OpRegistry& registry) {
  add<IndexCopy>(registry, "_contrib_index_copy", define);
  add<ScatterSetNd>(registry, "_scatter_set_nd", define);
  add_internal<ReplaceGrad>(registry, "_backward_replace", define);
}

}  // namespace symbind
