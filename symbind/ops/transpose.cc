#include "symbind/ops/transpose.h"

#include <utility>

#include "symbind/graph/define.h"

namespace symbind {
namespace {

Tuple reversed_axes(int rank) {
  Tuple axes;
  for (int axis = rank - 1; axis >= 0; --axis) axes.push_back(axis);
  return axes;
}

OpDef define(Op<Transpose> op) {
  return op.doc("Permutes the axes of data; without axes their order is reversed.")
      .memory_bound()
      .param(&Transpose::axes, "axes", "axis i of the result is axis axes[i] of the input; (): reversed")
      .infer_shape([](const Transpose& p, Shapes& s) {
        auto data = s["data"], output = s.output();
        if (!p.axes.empty()) data.meet(Shape::of_rank(static_cast<int>(p.axes.size())));
        if (!data.rank_known() && output.rank_known()) data.meet(Shape::of_rank(output.rank()));
        if (!data.rank_known()) return;
        output.meet(Shape::of_rank(data.rank()));
        const Tuple axes = p.axes.empty() ? reversed_axes(data.rank()) : p.axes;
        std::vector<bool> used(axes.size(), false);
        for (size_t i = 0; i < axes.size(); ++i) {
          const int from = data.get().axis(axes[i], s.where()), to = static_cast<int>(i);
          require(!used[static_cast<size_t>(from)], s.where(), " axes must name each axis once: axes ", print(axes));
          used[static_cast<size_t>(from)] = true;
          output.meet_dim(to, data[from]);
          data.meet_dim(from, output[to]);
        }
      })
      .gradient([](const Transpose& p, Grad& g) {
        Tuple inverse(p.axes.size());
        const auto rank = static_cast<int64_t>(p.axes.size());
        for (int64_t i = 0; i < rank; ++i) {
          const int64_t axis = p.axes[static_cast<size_t>(i)];
          inverse[static_cast<size_t>(axis < 0 ? axis + rank : axis)] = i;
        }
        g.set("data", transpose(g.out_grad(), {.axes = inverse}));
      });
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

}  // namespace

void register_transpose(OpRegistry& registry) {
  add<Transpose>(registry, "transpose", define);
  add<SwapAxis>(registry, "SwapAxis", define);
}

}  // namespace symbind
