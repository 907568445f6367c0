#include "symbind/ops/tile.h"

#include "symbind/backend/cpu/fill.h"
#include "symbind/backend/cpu/plain.h"
#include "symbind/backend/cpu/reduce_sums.h"
#include "symbind/core/error.h"
#include "symbind/passes/target.h"

namespace symbind::cpu_backend {
namespace {

// The sum over the repetitions. Axes of the same kind are merged, so that there are few.
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
    require(shape.rank() < Shape::max_rank, node.where(), " repeats too many axes for a gradient: at most ",
            Shape::max_rank);
    shape.push_back(axis.extent);
    repeats.push_back(axis.repeats);
  }
  const Tensor seen[] = {{shape, node.inputs[0].dtype, Layout::plain}};
  NodeView view = node;
  view.inputs = seen;
  return build_reduction(view, repeats, Reduction::sum);
}

}  // namespace

void add_tile(ImplementationTable& table) {
  add_plain<TileGrad>(table, build_repeated_grad<TileGrad>);
  add_plain<RepeatGrad>(table, build_repeated_grad<RepeatGrad>);
}

}  // namespace symbind::cpu_backend
