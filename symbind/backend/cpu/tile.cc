#include "symbind/ops/tile.h"

#include "symbind/backend/cpu/families.h"
#include "symbind/backend/cpu/fill.h"
#include "symbind/backend/cpu/move.h"
#include "symbind/backend/cpu/plain.h"
#include "symbind/backend/cpu/reduction.h"
#include "symbind/core/error.h"

namespace symbind::cpu_backend {
namespace {

template <class P>
std::unique_ptr<Kernel> build_repeated(const NodeView& node) {
  Movement movement;
  int64_t step = 1;
  const auto axes = repeated_axes(node.as<P>(), node.inputs[0].shape);
  for (size_t i = axes.size(); i-- > 0;) {
    movement.extents.insert(movement.extents.begin(), axes[i].extent);
    movement.steps.insert(movement.steps.begin(), axes[i].repeats ? 0 : step);
    if (!axes[i].repeats) step *= axes[i].extent;
  }
  return build_movement(node, std::move(movement));
}

// The sum over the repetitions. Axes of one kind are taken together, so that there are few.
template <class P>
std::unique_ptr<Kernel> build_repeated_grad(const NodeView& node) {
  if (node.inputs[0].shape.size() == 0) return build_fill(node, 0);
  Shape shape = Shape::scalar();
  std::vector<bool> repeats;
  for (const RepeatedAxis& axis : repeated_axes(node.as<P>(), node.outputs[0].shape)) {
    if (axis.extent == 1) continue;
    if (!repeats.empty() && repeats.back() == axis.repeats) {
      shape[shape.rank() - 1] *= axis.extent;
      continue;
    }
    require(shape.rank() < Shape::max_rank, node.where(), " repeats too many axes at once for a gradient");
    shape.push_back(axis.extent);
    repeats.push_back(axis.repeats);
  }
  const Tensor seen[] = {{shape, node.inputs[0].dtype, Layout::plain}};
  NodeView view = node;
  view.inputs = seen;
  return build_reduction(view, repeats, Reduction::sum);
}

// Aligned at the first axis: both have as many.
std::unique_ptr<Kernel> build_spread(const NodeView& node) {
  const Shape &data = node.inputs[0].shape, &out = node.outputs[0].shape;
  const auto strides = data.strides();
  Movement movement;
  for (int axis = 0; axis < out.rank(); ++axis) {
    movement.extents.push_back(out[axis]);
    movement.steps.push_back(data[axis] == out[axis] ? strides[static_cast<size_t>(axis)] : 0);
  }
  return build_movement(node, std::move(movement));
}

}  // namespace

void add_tile(ImplementationTable& table) {
  add_plain<Tile>(table, build_repeated<Tile>);
  add_plain<TileGrad>(table, build_repeated_grad<TileGrad>);
  add_plain<Repeat>(table, build_repeated<Repeat>);
  add_plain<RepeatGrad>(table, build_repeated_grad<RepeatGrad>);
  add_plain<BroadcastTo>(table, build_spread);
  add_plain<BroadcastAxis>(table, build_spread);
  add_plain<BroadcastLike>(table, build_spread);
}

}  // namespace symbind::cpu_backend
