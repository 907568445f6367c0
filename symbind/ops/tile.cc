#include "symbind/ops/tile.h"

#include <algorithm>

#include "symbind/graph/define.h"
#include "symbind/ops/extents.h"

namespace symbind {

std::vector<RepeatedAxis> repeated_axes(const Tile& params, const Shape& data) {
  const auto more = std::max<ptrdiff_t>(0, static_cast<ptrdiff_t>(params.reps.size()) - data.rank());
  const auto fewer = std::max<ptrdiff_t>(0, data.rank() - static_cast<ptrdiff_t>(params.reps.size()));
  std::vector<RepeatedAxis> axes;
  for (ptrdiff_t i = 0; i < more + data.rank(); ++i) {
    axes.push_back({i < fewer ? 1 : params.reps[static_cast<size_t>(i - fewer)], true});
    axes.push_back({i < more ? 1 : data[static_cast<int>(i - more)], false});
  }
  return axes;
}

std::vector<RepeatedAxis> repeated_axes(const Repeat& params, const Shape& data) {
  const int axis = params.axis ? data.axis(*params.axis, "[repeat]") : data.rank() - 1;
  return {{data.size(0, axis + 1), false}, {params.repeats, true}, {data.size(axis + 1, data.rank()), false}};
}

namespace {

OpDef define(Op<Tile> op) {
  return op
      .doc(
          "Repeats the whole array reps[i] times along axis i. With more numbers than axes, axes of extent 1 are "
          "inserted in front first.")
      .memory_bound()
      .param(&Tile::reps, "reps", "number of repetitions along each axis; the last number belongs to the last axis",
             each_at_least(0))
      .infer_shape([](const Tile& p, Shapes& s) {
        const auto data = s["data"];
        if (!data.rank_known()) return;
        const auto rank = std::max<size_t>(p.reps.size(), static_cast<size_t>(data.rank()));
        require(rank <= Shape::max_rank, s.where(), " the result would have ", rank, " axes: reps ", print(p.reps));
        const auto axes = repeated_axes(p, data);
        Shape shape = Shape::scalar();
        for (size_t i = 0; i < axes.size(); i += 2)
          shape.push_back(extent_product(axes[i].extent, axes[i + 1].extent, s.where()));
        s.output().meet(shape);
      })
      .gradient([](const Tile& p, Grad& g) { g.set("data", tile_grad(g.out_grad(), g.input("data"), {p})); });
}

OpDef define(Op<Repeat> op) {
  return op.doc("Repeats each element, or each slice along an axis, repeats times in succession.")
      .memory_bound()
      .param(&Repeat::repeats, "repeats", "number of repetitions of each element", at_least(0))
      .param(&Repeat::axis, "axis", "axis to repeat along; negative ones count from the end; None: the flattened array")
      .infer_shape([](const Repeat& p, Shapes& s) {
        const auto data = s["data"];
        if (!data.rank_known()) return;
        if (!p.axis) {
          if (data.known()) s.output().meet({extent_product(data.get().size(), p.repeats, s.where())});
          return;
        }
        const int axis = data.get().axis(*p.axis, s.where());
        s.output().meet(data.get().with(axis, extent_product(data[axis], p.repeats, s.where())));
      })
      .gradient([](const Repeat& p, Grad& g) { g.set("data", repeat_grad(g.out_grad(), g.input("data"), {p})); });
}

template <class P, class G>
Op<G>& like_data(Op<G>& op) {
  return op.inputs({"out_grad", "data"})
      .shape_only({"data"})
      .infer_shape([](const G&, Shapes& s) { s.output().meet(s["data"].get()); })
      .template shapes_of<P>();
}
OpDef define(Op<TileGrad> op) {
  return like_data<Tile>(op).param(&Tile::reps, "reps", "number of repetitions along each axis", each_at_least(0));
}
OpDef define(Op<RepeatGrad> op) {
  return like_data<Repeat>(op)
      .param(&Repeat::repeats, "repeats", "number of repetitions of each element", at_least(0))
      .param(&Repeat::axis, "axis", "the axis");
}

}  // namespace

void register_tile(OpRegistry& registry) {
  add<Tile>(registry, "tile", define);
  add_internal<TileGrad>(registry, "_backward_tile", define);
  add<Repeat>(registry, "repeat", define);
  add_internal<RepeatGrad>(registry, "_backward_repeat", define);
}

}  // namespace symbind
