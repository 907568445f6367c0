#include "symbind/ops/gather.h"

#include "symbind/graph/define.h"
#include "symbind/ops/elementwise.h"

namespace symbind {
namespace {

// Output and one input have the same type, whatever the type of the indices.
void type_follows(Types& t, const char* input) {
  auto data = t[input];
  data.meet(t.output().get());
  t.output().meet(data.get());
}

// ---- take, Embedding ------------------------------------------------------------------------------------------------

template <class P>
Op<P>& take_fields(Op<P>& op) {
  return op.param(&Take::axis, "axis", "axis to take along; negative ones count from the end")
      .param(&Take::mode, "mode",
             "what an index out of range means: 'clip': the nearest valid index; 'wrap': the index modulo the extent; "
             "'raise': an error",
             one_of(index_mode::of_take));
}

OpDef define(Op<Take> op) {
  return take_fields(op)
      .doc(
          "Takes slices of an array along an axis at the given indices; in the shape of the result the axes of indices "
          "replace that axis.")
      .inputs({"a", "indices"})
      .infer_shape([](const Take& p, Shapes& s) {
        const auto a = s["a"], indices = s["indices"];
        if (!a.rank_known() || !indices.rank_known()) return;
        const int axis = a.get().axis(p.axis, s.where());
        require(a.rank() - 1 + indices.rank() <= Shape::max_rank, s.where(), " the result would have more than ",
                Shape::max_rank, " axes: a ", a.get(), ", indices ", indices.get());
        Shape shape = a.get().slice(0, axis);
        for (const int64_t dim : indices.get()) shape.push_back(dim);
        for (int i = axis + 1; i < a.rank(); ++i) shape.push_back(a[i]);
        s.output().meet(shape);
      })
      .infer_type([](const Take&, Types& t) { type_follows(t, "a"); })
      .gradient(
          [](const Take& p, Grad& g) { g.set("a", take_grad(g.out_grad(), g.input("indices"), g.input("a"), {p})); });
}

OpDef define(Op<TakeGrad> op) {
  return take_fields(op)
      .inputs({"out_grad", "indices", "a"})
      .shape_only({"a"})
      .infer_shape([](const TakeGrad&, Shapes& s) { s.output().meet(s["a"].get()); })
      .shapes_of<Take>()
      .infer_type([](const TakeGrad&, Types& t) { type_follows(t, "out_grad"); });
}

OpDef define(Op<Embedding> op) {
  return op
      .doc(
          "Looks up a row of weight for each index in data. weight is (input_dim, output_dim); the result has the axes "
          "of data followed by output_dim. An index out of range takes the nearest valid row.")
      .aliases({"_contrib_SparseEmbedding"})
      .param(&Embedding::input_dim, "input_dim", "number of rows of weight: the size of the vocabulary", at_least(1))
      .param(&Embedding::output_dim, "output_dim", "number of columns of weight: the length of an embedding vector",
             at_least(1))
      .param(&Embedding::dtype, "dtype", "element type of weight, unless it is inferred from elsewhere in the network")
      .param(&Embedding::sparse_grad, "sparse_grad",
             "accepted for compatibility and ignored: the gradient of weight is a dense array")
      .inputs({"data", "weight"})
      .infer_shape([](const Embedding& p, Shapes& s) {
        s["weight"].meet({p.input_dim, p.output_dim});
        const auto data = s["data"];
        if (!data.rank_known()) return;
        require(data.rank() < Shape::max_rank, s.where(), " data has too many axes: ", data.get());
        Shape shape = data;
        shape.push_back(p.output_dim);
        s.output().meet(shape);
        s["data"].meet(s.output().get().slice(0, data.rank()));
      })
      .infer_type([](const Embedding& p, Types& t) {
        type_follows(t, "weight");
        if (!t["weight"].known()) t["weight"].meet(p.dtype);
        t.output().meet(t["weight"].get());
      })
      .gradient([](const Embedding&, Grad& g) {
        g.set("weight", take_grad(g.out_grad(), g.input("data"), g.input("weight")));
      });
}

// ---- one_hot, pick, batch_take --------------------------------------------------------------------------------------

OpDef define(Op<OneHot> op) {
  return op
      .doc(
          "One-hot vectors: for each index a row of length depth with on_value at the index and off_value elsewhere. "
          "The result has the axes of indices followed by depth; an index out of range gives a row of off_value.")
      .param(&OneHot::depth, "depth", "number of classes: the length of each row", at_least(0))
      .param(&OneHot::on_value, "on_value", "value at the index")
      .param(&OneHot::off_value, "off_value", "value at all other positions")
      .param(&OneHot::dtype, "dtype", "element type of the result")
      .inputs({"indices"})
      .infer_shape([](const OneHot& p, Shapes& s) {
        const auto indices = s["indices"];
        if (!indices.rank_known()) return;
        require(indices.rank() < Shape::max_rank, s.where(), " indices has too many axes: ", indices.get());
        Shape shape = indices;
        shape.push_back(p.depth);
        s.output().meet(shape);
        s["indices"].meet(s.output().get().slice(0, indices.rank()));
      })
      .infer_type([](const OneHot& p, Types& t) { t.output().meet(p.dtype); });
}

template <class P>
Op<P>& pick_fields(Op<P>& op) {
  return op.param(&Pick::axis, "axis", "axis to pick along; negative ones count from the end")
      .param(&Pick::keepdims, "keepdims", "keep the axis in the result, with extent 1")
      .param(&Pick::mode, "mode",
             "what an index out of range means: 'clip': the nearest valid index; 'wrap': the index modulo the extent",
             one_of(index_mode::of_pick))
      .check([](P& p) { require(p.axis.has_value(), "axis must be given"); });
}

OpDef define(Op<Pick> op) {
  return pick_fields(op)
      .doc(
          "Picks one element along an axis at the position that index gives. index has the shape of data without the "
          "axis, or with extent 1 along it; the result has the shape of data without the axis.")
      .aliases({"choose_element_0index"})
      .inputs({"data", "index"})
      .infer_shape([](const Pick& p, Shapes& s) {
        const auto data = s["data"];
        if (!data.rank_known()) return;
        const int axis = data.get().axis(*p.axis, s.where());
        Shape without = data.get().slice(0, axis);
        for (int i = axis + 1; i < data.rank(); ++i) without.push_back(data[i]);
        if (without.rank() == 0) without = Shape{1};
        const Shape with = data.get().with(axis, 1);
        auto index = s["index"];
        // The index may keep the axis with extent 1.
        if (index.rank() == with.rank() && data.rank() > 1)
          index.meet(with);
        else
          index.meet(without);
        s.output().meet(p.keepdims ? with : without);
      })
      .infer_type([](const Pick&, Types& t) { type_follows(t, "data"); })
      .gradient([](const Pick& p, Grad& g) {
        g.set("data", pick_grad(g.out_grad(), g.input("index"), g.input("data"), {p}));
      });
}

OpDef define(Op<PickGrad> op) {
  return pick_fields(op)
      .inputs({"out_grad", "index", "data"})
      .shape_only({"data"})
      .infer_shape([](const PickGrad&, Shapes& s) { s.output().meet(s["data"].get()); })
      .shapes_of<Pick>()
      .infer_type([](const PickGrad&, Types& t) { type_follows(t, "out_grad"); });
}

OpDef define(Op<BatchTake> op) {
  return op.doc("Picks one element of each row: a[i, indices[i]]. a is (rows, columns), indices and the result (rows).")
      .inputs({"a", "indices"})
      .infer_shape([](const BatchTake&, Shapes& s) {
        auto a = s["a"], indices = s["indices"];
        a.meet(Shape::of_rank(2));
        indices.meet(s.output().get());
        indices.meet({a[0]});
        a.meet_dim(0, indices[0]);
        s.output().meet(indices.get());
      })
      .infer_type([](const BatchTake&, Types& t) { type_follows(t, "a"); })
      .gradient(
          [](const BatchTake&, Grad& g) { g.set("a", pick_grad(g.out_grad(), g.input("indices"), g.input("a"))); });
}

OpDef define(Op<FillElement> op) {
  return op.doc("A copy of lhs (rows, columns) with one element of each row replaced: result[i, rhs[i]] = mhs[i].")
      .precision(Precision::full)
      .inputs({"lhs", "mhs", "rhs"})
      .infer_shape([](const FillElement&, Shapes& s) {
        auto lhs = s["lhs"];
        lhs.meet(Shape::of_rank(2));
        lhs.meet(s.output().get());
        s["mhs"].meet({lhs[0]});
        s["rhs"].meet({lhs[0]});
        s.output().meet(lhs.get());
      })
      .infer_type([](const FillElement&, Types& t) {
        type_follows(t, "lhs");
        t["mhs"].meet(t["lhs"].get());
      });
}

// ---- where ----------------------------------------------------------------------------------------------------------

OpDef define(Op<Where> op) {
  return op
      .doc(
          "x where condition is nonzero, else y. x, y and the result have one shape; condition has that shape, or one "
          "axis and then selects whole slices along axis 0.")
      .precision(Precision::widest)
      .inputs({"condition", "x", "y"})
      .infer_shape([](const Where&, Shapes& s) {
        auto condition = s["condition"], x = s["x"], y = s["y"];
        x.meet(s.output());
        x.meet(y);
        x.meet(s.output());
        if (!x.rank_known()) return;
        if (condition.rank_known() && condition.rank() == 1 && x.rank() > 1)
          condition.meet({x[0]});
        else
          condition.meet(x.get());
      })
      .infer_type([](const Where&, Types& t) {
        type_follows(t, "x");
        type_follows(t, "y");
        type_follows(t, "x");
      })
      .gradient([](const Where&, Grad& g) {
        const auto dy = g.out_grad(), condition = g.input("condition");
        if (g.wants("x")) g.set("x", where(condition, dy, zeros_like(dy)));
        if (g.wants("y")) g.set("y", where(condition, zeros_like(dy), dy));
      });
}

// ---- gather_nd, scatter_nd ------------------------------------------------------------------------------------------

// indices (depth, positions…) name the first `depth` axes of `whole`; `parts` is (positions…, the other axes of whole).
Shape parts_of(const Shape& indices, const Shape& whole, const std::string& where) {
  require(indices.rank() >= 1, where, " indices needs an axis: ", indices);
  if (indices[0] == unknown_dim) return {};
  require(indices[0] >= 1 && indices[0] <= whole.rank(), where, " indices has ", indices[0],
          " rows, the array has as many axes at least: indices ", indices, ", array ", whole);
  const int depth = static_cast<int>(indices[0]);
  require(indices.rank() - 1 + whole.rank() - depth <= Shape::max_rank, where, " the result has too many axes");
  Shape shape = indices.slice(1, indices.rank());
  for (int axis = depth; axis < whole.rank(); ++axis) shape.push_back(whole[axis]);
  return shape.rank() == 0 ? Shape{1} : shape;
}

OpDef define(Op<GatherNd> op) {
  return op
      .doc(
          "Gathers elements or slices of data: column i of indices (m, n…) is an index into the first m axes. The "
          "result has the shape (n…) followed by the other axes of data.")
      .inputs({"data", "indices"})
      .infer_shape([](const GatherNd&, Shapes& s) {
        if (s["data"].rank_known() && s["indices"].rank_known())
          s.output().meet(parts_of(s["indices"], s["data"], s.where()));
      })
      .infer_type([](const GatherNd&, Types& t) { type_follows(t, "data"); })
      .gradient([](const GatherNd&, Grad& g) {
        g.set("data", gather_nd_grad(g.out_grad(), g.input("indices"), g.input("data")));
      });
}

OpDef define(Op<GatherNdGrad> op) {
  return op.inputs({"out_grad", "indices", "data"})
      .shape_only({"data"})
      .infer_shape([](const GatherNdGrad&, Shapes& s) { s.output().meet(s["data"].get()); })
      .shapes_of<GatherNd>()
      .infer_type([](const GatherNdGrad&, Types& t) { type_follows(t, "out_grad"); });
}

OpDef define(Op<ScatterNd> op) {
  return op
      .doc(
          "Scatters data into an array of zeros: column i of indices (m, n…) is the index, into the first m axes, at "
          "which element or slice i of data is stored.")
      .param(&ScatterNd::shape, "shape", "shape of the result", each_at_least(0))
      .inputs({"data", "indices"})
      .infer_shape([](const ScatterNd& p, Shapes& s) {
        const Shape whole(p.shape);
        s.output().meet(whole);
        if (s["indices"].rank_known()) s["data"].meet(parts_of(s["indices"], whole, s.where()));
      })
      .infer_type([](const ScatterNd&, Types& t) { type_follows(t, "data"); })
      .gradient([](const ScatterNd&, Grad& g) { g.set("data", gather_nd(g.out_grad(), g.input("indices"))); });
}

}  // namespace

void register_gather(OpRegistry& registry) {
  add<Take>(registry, "take", define);
  add_internal<TakeGrad>(registry, "_backward_take", define);
  add<Embedding>(registry, "Embedding", define);
  add<OneHot>(registry, "one_hot", define);
  add<Pick>(registry, "pick", define);
  add_internal<PickGrad>(registry, "_backward_pick", define);
  add<BatchTake>(registry, "batch_take", define);
  add<FillElement>(registry, "fill_element_0index", define);
  add<Where>(registry, "where", define);
  add<GatherNd>(registry, "gather_nd", define);
  add_internal<GatherNdGrad>(registry, "_backward_gather_nd", define);
  add<ScatterNd>(registry, "scatter_nd", define);
}

}  // namespace symbind
