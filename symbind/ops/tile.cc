#include "symbind/ops/tile.h"

#include <algorithm>

#include "symbind/graph/define.h"
#include "symbind/ops/broadcast.h"
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

// ---- tile, repeat ---------------------------------------------------------------------------------------------------

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

// ---- broadcast_… ----------------------------------------------------------------------------------------------------

// Spreads axes of extent 1; `wanted` holds an extent or unknown_dim for each axis.
void infer_spread(Shapes& s, const Shape& data, const Shape& wanted) {
  Shape shape = data;
  for (int axis = 0; axis < data.rank(); ++axis) {
    if (wanted[axis] == unknown_dim || data[axis] == unknown_dim) {
      if (wanted[axis] != unknown_dim) shape[axis] = wanted[axis];
      continue;
    }
    require(data[axis] == wanted[axis] || data[axis] == 1, s.where(), " only axes of extent 1 can be spread: ", data,
            " to ", wanted);
    shape[axis] = wanted[axis];
  }
  s.output().meet(shape);
}

void add_gradient(Grad& g, const char* input) { g.set(input, sum_to_like(g.out_grad(), g.input(input))); }

OpDef define(Op<BroadcastTo> op) {
  return op.doc("Broadcasts an array to a shape by repeating axes of extent 1.")
      .memory_bound()
      .param(&BroadcastTo::shape, "shape",
             "shape of the result, with as many numbers as data has axes; 0 keeps the extent of data", each_at_least(0))
      .infer_shape([](const BroadcastTo& p, Shapes& s) {
        const auto data = s["data"];
        if (!data.rank_known()) return;
        require(data.rank() == static_cast<int>(p.shape.size()), s.where(),
                " shape must have as many numbers as data has axes: shape ", print(p.shape), ", data ", data.get());
        Shape wanted(p.shape);
        for (int axis = 0; axis < wanted.rank(); ++axis)
          if (wanted[axis] == 0) wanted[axis] = data[axis];
        infer_spread(s, data, wanted);
      })
      .gradient([](const BroadcastTo&, Grad& g) { add_gradient(g, "data"); });
}

OpDef define(Op<BroadcastAxis> op) {
  return op.doc("Broadcasts axes of extent 1 to the given sizes.")
      .aliases({"broadcast_axes"})
      .param(&BroadcastAxis::axis, "axis", "axis or axes of extent 1 to broadcast; negative ones count from the end")
      .param(&BroadcastAxis::size, "size", "extent of each of these axes in the result", each_at_least(0))
      .check([](BroadcastAxis& p) {
        require(p.axis.size() == p.size.size(), "axis and size must be equally long: axis ", print(p.axis), ", size ",
                print(p.size));
      })
      .infer_shape([](const BroadcastAxis& p, Shapes& s) {
        const auto data = s["data"];
        if (!data.rank_known()) return;
        Shape wanted = data;
        for (size_t i = 0; i < p.axis.size(); ++i) {
          const int axis = data.get().axis(p.axis[i], s.where());
          require(data[axis] == 1 || data[axis] == unknown_dim, s.where(), " axis ", axis, " must have extent 1: data ",
                  data.get());
          wanted[axis] = p.size[i];
        }
        infer_spread(s, data, wanted);
      })
      .gradient([](const BroadcastAxis&, Grad& g) { add_gradient(g, "data"); });
}

OpDef define(Op<BroadcastLike> op) {
  return op.doc("Broadcasts lhs to the shape of rhs by repeating axes of extent 1; only the shape of rhs is read.")
      .param(&BroadcastLike::lhs_axes, "lhs_axes", "axes of lhs to broadcast; None: all")
      .param(&BroadcastLike::rhs_axes, "rhs_axes", "axes of rhs whose extents they get, as many as lhs_axes")
      .inputs({"lhs", "rhs"})
      .shape_only({"rhs"})
      .check([](BroadcastLike& p) {
        require(p.lhs_axes.has_value() == p.rhs_axes.has_value() &&
                    (!p.lhs_axes || p.lhs_axes->size() == p.rhs_axes->size()),
                "lhs_axes and rhs_axes must be equally long");
      })
      .infer_shape([](const BroadcastLike& p, Shapes& s) {
        const auto lhs = s["lhs"], rhs = s["rhs"];
        if (!lhs.rank_known() || !rhs.rank_known()) return;
        Shape wanted = lhs;
        if (!p.lhs_axes) {
          require(lhs.rank() == rhs.rank(), s.where(), " lhs and rhs must have as many axes: lhs ", lhs.get(), ", rhs ",
                  rhs.get());
          wanted = rhs;
        } else {
          for (size_t i = 0; i < p.lhs_axes->size(); ++i)
            wanted[lhs.get().axis((*p.lhs_axes)[i], s.where())] = rhs[rhs.get().axis((*p.rhs_axes)[i], s.where())];
        }
        infer_spread(s, lhs, wanted);
      })
      .infer_type([](const BroadcastLike&, Types& t) {
        t["lhs"].meet(t.output().get());
        t.output().meet(t["lhs"].get());
      })
      .gradient([](const BroadcastLike&, Grad& g) { add_gradient(g, "lhs"); });
}

}  // namespace

void register_tile(OpRegistry& registry) {
  add<Tile>(registry, "tile", define);
  add_internal<TileGrad>(registry, "_backward_tile", define);
  add<Repeat>(registry, "repeat", define);
  add_internal<RepeatGrad>(registry, "_backward_repeat", define);
  add<BroadcastTo>(registry, "broadcast_to", define);
  add<BroadcastAxis>(registry, "broadcast_axis", define);
  add<BroadcastLike>(registry, "broadcast_like", define);
}

}  // namespace symbind
