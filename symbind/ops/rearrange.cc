#include "symbind/ops/rearrange.h"

#include <algorithm>

#include "symbind/graph/define.h"
#include "symbind/ops/extents.h"
#include "symbind/ops/matrix.h"

namespace symbind {
namespace {

OpDef define(Op<ExpandDims> op) {
  return op.doc("Inserts an axis of extent 1.")
      .param(&ExpandDims::axis, "axis",
             "index of the new axis in the result; negative ones count from the end of the result")
      .view()
      .infer_shape([](const ExpandDims& p, Shapes& s) {
        auto data = s["data"], output = s.output();
        if (data.rank_known()) {
          require(data.rank() < Shape::max_rank, s.where(), " data has too many axes: ", data.get());
          const int axis = Shape::of_rank(data.rank() + 1).axis(p.axis, s.where());
          Shape shape = data.get().slice(0, axis);
          shape.push_back(1);
          for (int i = axis; i < data.rank(); ++i) shape.push_back(data[i]);
          output.meet(shape);
        }
        if (output.rank_known() && output.rank() > 1) {
          const int axis = output.get().axis(p.axis, s.where());
          Shape shape = output.get().slice(0, axis);
          for (int i = axis + 1; i < output.rank(); ++i) shape.push_back(output[i]);
          data.meet(shape);
        }
      })
      .gradient([](const ExpandDims&, Grad& g) { g.set("data", reshape_like(g.out_grad(), g.input("data"))); });
}

OpDef define(Op<Squeeze> op) {
  return op.doc("Removes axes of extent 1.")
      .param(&Squeeze::axis, "axis",
             "axis or axes to remove, each of extent 1; negative ones count from the end; None: all of extent 1")
      .view()
      .infer_shape([](const Squeeze& p, Shapes& s) {
        const auto data = s["data"];
        if (!data.rank_known() || (!p.axis && !data.known())) return;
        std::vector<bool> left_out(static_cast<size_t>(data.rank()), false);
        for (int i = 0; i < data.rank(); ++i) left_out[static_cast<size_t>(i)] = !p.axis && data[i] == 1;
        for (const int64_t given : p.axis.value_or(Tuple{})) {
          const int axis = data.get().axis(given, s.where());
          require(data[axis] == 1 || data[axis] == unknown_dim, s.where(), " axis ", axis,
                  " has more than one element: data ", data.get());
          left_out[static_cast<size_t>(axis)] = true;
        }
        Shape shape = Shape::scalar();
        for (int i = 0; i < data.rank(); ++i)
          if (!left_out[static_cast<size_t>(i)]) shape.push_back(data[i]);
        s.output().meet(shape.rank() == 0 ? Shape{1} : shape);
      })
      .gradient([](const Squeeze&, Grad& g) { g.set("data", reshape_like(g.out_grad(), g.input("data"))); });
}

OpDef define(Op<SwapAxis> op) {
  return op.doc("Exchanges two axes.")
      .memory_bound()
      .aliases({"swapaxes"})
      .param(&SwapAxis::dim1, "dim1", "first axis to exchange; negative ones count from the end")
      .param(&SwapAxis::dim2, "dim2", "second axis to exchange; negative ones count from the end")
      .infer_shape([](const SwapAxis& p, Shapes& s) {
        const auto swapped = [&](Shape shape) {
          std::swap(shape[shape.axis(p.dim1, s.where())], shape[shape.axis(p.dim2, s.where())]);
          return shape;
        };
        if (s["data"].rank_known()) s.output().meet(swapped(s["data"]));
        if (s.output().rank_known()) s["data"].meet(swapped(s.output()));
      })
      .gradient([](const SwapAxis& p, Grad& g) { g.set("data", swap_axis(g.out_grad(), p)); });
}

OpDef define(Op<Reverse> op) {
  return op.doc("Reverses the order of the elements along the given axes; the result has the shape of data.")
      .aliases({"flip"})
      .param(&Reverse::axis, "axis", "axis or axes to reverse; negative ones count from the end")
      .infer_shape([](const Reverse& p, Shapes& s) {
        same_shape(s);
        const auto data = s["data"];
        if (!data.rank_known()) return;
        std::vector<bool> named(static_cast<size_t>(data.rank()), false);
        for (const int64_t given : p.axis) {
          const auto axis = static_cast<size_t>(data.get().axis(given, s.where()));
          require(!named[axis], s.where(), " each axis may be named once: axis ", print(p.axis));
          named[axis] = true;
        }
      })
      .gradient([](const Reverse& p, Grad& g) { g.set("data", reverse(g.out_grad(), p)); });
}

// (n, channels, h, w): block·block times fewer channels and block times more rows and columns, or the other way.
void infer_blocks(Shapes& s, int64_t block, bool to_space) {
  const auto data = s["data"];
  if (!data.known()) return;
  require(data.rank() == 4, s.where(), " data must have 4 axes: data ", data.get());
  const Shape& d = data;
  if (to_space) {
    require(d[1] % (block * block) == 0, s.where(), " the square of block_size must divide the channels: block_size ",
            block, ", data ", d);
    s.output().meet(
        {d[0], d[1] / (block * block), extent_product(d[2], block, s.where()), extent_product(d[3], block, s.where())});
  } else {
    require(d[2] % block == 0 && d[3] % block == 0, s.where(), " block_size must divide rows and columns: block_size ",
            block, ", data ", d);
    s.output().meet({d[0], extent_product(d[1], block * block, s.where()), d[2] / block, d[3] / block});
  }
}

OpDef define(Op<DepthToSpace> op) {
  return op
      .doc(
          "Moves channels into spatial blocks: (n, c · block_size², h, w) becomes (n, c, h · block_size, w · "
          "block_size).")
      .param(&DepthToSpace::block_size, "block_size", "extent of a block along rows and columns", between(1, 1 << 15))
      .infer_shape([](const DepthToSpace& p, Shapes& s) { infer_blocks(s, p.block_size, true); })
      .gradient([](const DepthToSpace& p, Grad& g) {
        g.set("data", space_to_depth(g.out_grad(), {.block_size = p.block_size}));
      });
}

OpDef define(Op<SpaceToDepth> op) {
  return op
      .doc(
          "Moves spatial blocks into channels: (n, c, h · block_size, w · block_size) becomes (n, c · block_size², h, "
          "w).")
      .param(&SpaceToDepth::block_size, "block_size", "extent of a block along rows and columns", between(1, 1 << 15))
      .infer_shape([](const SpaceToDepth& p, Shapes& s) { infer_blocks(s, p.block_size, false); })
      .gradient([](const SpaceToDepth& p, Grad& g) {
        g.set("data", depth_to_space(g.out_grad(), {.block_size = p.block_size}));
      });
}

}  // namespace

void register_rearrange(OpRegistry& registry) {
  add<ExpandDims>(registry, "expand_dims", define);
  add<Squeeze>(registry, "squeeze", define);
  add<SwapAxis>(registry, "SwapAxis", define);
  add<Reverse>(registry, "reverse", define);
  add<DepthToSpace>(registry, "depth_to_space", define);
  add<SpaceToDepth>(registry, "space_to_depth", define);
}

}  // namespace symbind
