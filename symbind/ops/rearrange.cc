#include "symbind/ops/rearrange.h"

#include "symbind/graph/define.h"
#include "symbind/ops/extents.h"

namespace symbind {
namespace {

OpDef define(Op<Reverse> op) {
  return op.doc("Reverses the order of the elements along the given axes; the result has the shape of data.")
      .aliases({"flip"})
      .param(&Reverse::axis, "axis", "axis or axes to reverse, one after the other; negative ones count from the end")
      .infer_shape([](const Reverse& p, Shapes& s) {
        same_shape(s);
        if (!s["data"].rank_known()) return;
        for (const int64_t axis : p.axis) s["data"].get().axis(axis, s.where());  // fails for an axis out of range
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
  add<Reverse>(registry, "reverse", define);
  add<DepthToSpace>(registry, "depth_to_space", define);
  add<SpaceToDepth>(registry, "space_to_depth", define);
}

}  // namespace symbind
