#include "symbind/ops/rearrange.h"

#include <algorithm>
#include <numeric>

#include "symbind/backend/cpu/families.h"
#include "symbind/backend/cpu/fill.h"
#include "symbind/backend/cpu/move.h"
#include "symbind/backend/cpu/plain.h"
#include "symbind/backend/cpu/transposition.h"

namespace symbind::cpu_backend {
namespace {

std::unique_ptr<Kernel> build_swap(const NodeView& node) {
  const auto& p = node.as<SwapAxis>();
  const Shape& data = node.inputs[0].shape;
  Tuple axes(static_cast<size_t>(data.rank()));
  std::iota(axes.begin(), axes.end(), 0);
  std::swap(axes[static_cast<size_t>(data.axis(p.dim1, node.where()))],
            axes[static_cast<size_t>(data.axis(p.dim2, node.where()))]);
  return build_transposition(node, data, axes);
}

std::unique_ptr<Kernel> build_reverse(const NodeView& node) {
  const Shape& data = node.inputs[0].shape;
  const auto strides = data.strides();
  Movement movement{{data.begin(), data.end()}, {strides.begin(), strides.begin() + data.rank()}, 0};
  for (const int64_t given : node.as<Reverse>().axis) {
    const auto axis = static_cast<size_t>(data.axis(given, node.where()));
    movement.start += movement.steps[axis] * (movement.extents[axis] - 1);
    movement.steps[axis] = -movement.steps[axis];
  }
  return build_movement(node, std::move(movement));
}

// (n, block, block, channels, h, w) → (n, channels, h, block, w, block)
std::unique_ptr<Kernel> build_depth_to_space(const NodeView& node) {
  const int64_t block = node.as<DepthToSpace>().block_size;
  const Shape& data = node.inputs[0].shape;
  return build_transposition(node, {data[0], block, block, data[1] / (block * block), data[2], data[3]},
                             {0, 3, 4, 1, 5, 2});
}

std::unique_ptr<Kernel> build_space_to_depth(const NodeView& node) {
  const int64_t block = node.as<SpaceToDepth>().block_size;
  const Shape& data = node.inputs[0].shape;
  return build_transposition(node, {data[0], data[1], data[2] / block, block, data[3] / block, block},
                             {0, 3, 5, 1, 2, 4});
}

}  // namespace

void add_rearrange(ImplementationTable& table) {
  add_plain<ExpandDims>(table, build_copy);
  add_plain<Squeeze>(table, build_copy);
  add_plain<SwapAxis>(table, build_swap);
  add_plain<Reverse>(table, build_reverse);
  add_plain<DepthToSpace>(table, build_depth_to_space);
  add_plain<SpaceToDepth>(table, build_space_to_depth);
}

}  // namespace symbind::cpu_backend
