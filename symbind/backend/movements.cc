#include "symbind/backend/movements.h"

#include <numeric>
#include <utility>

#include "symbind/ops/broadcast.h"
#include "symbind/ops/diag.h"
#include "symbind/ops/linalg_element.h"
#include "symbind/ops/rearrange.h"
#include "symbind/ops/slice.h"
#include "symbind/ops/tile.h"
#include "symbind/ops/transpose.h"

namespace symbind {
namespace {

// ---- Transposed axes ------------------------------------------------------------------------------------------------

// Axis axes[i] becomes axis i; no axes: reverses all.
Movement turned(const Shape& data, Tuple axes, std::string_view who) {
  if (axes.empty())
    for (int axis = data.rank() - 1; axis >= 0; --axis) axes.push_back(axis);
  const auto strides = data.strides();
  Movement movement;
  for (const int64_t given : axes) {
    const int axis = data.axis(given, who);
    movement.extents.push_back(data[axis]);
    movement.steps.push_back(strides[static_cast<size_t>(axis)]);
  }
  return movement;
}

Movement transpose_movement(const NodeView& node) {
  return turned(node.inputs[0].shape, node.as<Transpose>().axes, node.where());
}

Movement swap_movement(const NodeView& node) {
  const auto& p = node.as<SwapAxis>();
  const Shape& data = node.inputs[0].shape;
  Tuple axes(static_cast<size_t>(data.rank()));
  std::iota(axes.begin(), axes.end(), 0);
  std::swap(axes[static_cast<size_t>(data.axis(p.dim1, node.where()))],
            axes[static_cast<size_t>(data.axis(p.dim2, node.where()))]);
  return turned(data, axes, node.where());
}

Movement reverse_movement(const NodeView& node) {
  const Shape& data = node.inputs[0].shape;
  const auto strides = data.strides();
  Movement movement{{data.begin(), data.end()}, {strides.begin(), strides.begin() + data.rank()}, 0};
  for (const int64_t given : node.as<Reverse>().axis) {
    const auto axis = static_cast<size_t>(data.axis(given, node.where()));
    movement.start += movement.steps[axis] * (movement.extents[axis] - 1);
    movement.steps[axis] = -movement.steps[axis];
  }
  return movement;
}

// (n, block, block, channels, h, w) → (n, channels, h, block, w, block)
Movement depth_to_space_movement(const NodeView& node) {
  const int64_t block = node.as<DepthToSpace>().block_size;
  const Shape& data = node.inputs[0].shape;
  return turned({data[0], block, block, data[1] / (block * block), data[2], data[3]}, {0, 3, 4, 1, 5, 2}, node.where());
}

Movement space_to_depth_movement(const NodeView& node) {
  const int64_t block = node.as<SpaceToDepth>().block_size;
  const Shape& data = node.inputs[0].shape;
  return turned({data[0], data[1], data[2] / block, block, data[3] / block, block}, {0, 3, 5, 1, 2, 4}, node.where());
}

// ---- Elements repeated ----------------------------------------------------------------------------------------------

template <class P>
Movement repeat_movement(const NodeView& node) {
  Movement movement;
  int64_t step = 1;
  const auto axes = repeated_axes(node.as<P>(), node.inputs[0].shape);
  for (size_t i = axes.size(); i-- > 0;) {
    movement.extents.insert(movement.extents.begin(), axes[i].extent);
    movement.steps.insert(movement.steps.begin(), axes[i].repeats ? 0 : step);
    if (!axes[i].repeats) step *= axes[i].extent;
  }
  return movement;
}

// Aligned at the first axis: both have as many.
Movement spread_movement(const NodeView& node) {
  const Shape &data = node.inputs[0].shape, &out = node.outputs[0].shape;
  const auto strides = data.strides();
  Movement movement;
  for (int axis = 0; axis < out.rank(); ++axis) {
    movement.extents.push_back(out[axis]);
    movement.steps.push_back(data[axis] == out[axis] ? strides[static_cast<size_t>(axis)] : 0);
  }
  return movement;
}

// ---- Parts ----------------------------------------------------------------------------------------------------------

Movement part_of(const Shape& whole, const SliceRange& range) {
  const auto strides = whole.strides();
  Movement movement;
  for (int axis = 0; axis < whole.rank(); ++axis) {
    const auto i = static_cast<size_t>(axis);
    movement.extents.push_back(range.shape[axis]);
    movement.steps.push_back(range.step[i] * strides[i]);
    movement.start += range.start[i] * strides[i];
  }
  return movement;
}

template <class P>
Movement part(const NodeView& node, const Shape& whole) {
  const P& p = node.as<P>();
  return part_of(whole, resolve_slice(whole, p.begin, p.end, p.step, node.where()));
}

// Of a node that says its range from the whole and, where it has one, the array that gives the size.
template <class P, class... Like>
Movement ranged_part(const NodeView& node, const Shape& whole, const Like&... like) {
  return part_of(whole, range_of(node.as<P>(), whole, like..., node.where()));
}

Movement diagonals(const Diag& p, const Shape& whole, const NodeView& node) {
  Diagonals made = diagonals_of(p, whole, node.where());
  return {std::move(made.extents), std::move(made.steps), made.start};
}
// Of the matrices in the last two axes.
Movement matrix_diagonals(int64_t offset, const Shape& matrices, const NodeView& node) {
  return diagonals({.k = offset, .axis1 = -2, .axis2 = -1}, matrices, node);
}

}  // namespace

DiagonalMovement diag_movement(const NodeView& node) {
  const auto& p = node.as<Diag>();
  const Shape& data = node.inputs[0].shape;
  if (data.rank() == 1) return {diagonals({.k = p.k}, node.outputs[0].shape, node), true};
  return {diagonals(p, data, node), false};
}

DiagonalMovement diag_grad_movement(const NodeView& node) {
  const auto& p = node.as<DiagGrad>();
  const Shape& data = node.outputs[0].shape;
  if (data.rank() == 1) return {diagonals({.k = p.k}, node.inputs[0].shape, node), false};
  return {diagonals(p, data, node), true};
}

template <class P>
Movement assigned_part(const NodeView& node) {
  return part<P>(node, node.outputs[0].shape);
}
template Movement assigned_part<SliceAssign>(const NodeView& node);
template Movement assigned_part<SliceAssignScalar>(const NodeView& node);

Movement merged(const Movement& movement) {
  Movement made{{}, {}, movement.start};
  for (size_t axis = 0; axis < movement.extents.size(); ++axis) {
    const int64_t extent = movement.extents[axis], step = movement.steps[axis];
    if (extent == 1) continue;
    if (!made.extents.empty() && made.steps.back() == step * extent) {
      made.extents.back() *= extent;
      made.steps.back() = step;
    } else {
      made.extents.push_back(extent);
      made.steps.push_back(step);
    }
  }
  if (made.extents.empty()) {
    made.extents.push_back(1);
    made.steps.push_back(1);
  }
  return made;
}

std::vector<MovingOperator> taking_operators() {
  return {
      {&op_of<Transpose>(), transpose_movement},
      {&op_of<SwapAxis>(), swap_movement},
      {&op_of<Reverse>(), reverse_movement},
      {&op_of<DepthToSpace>(), depth_to_space_movement},
      {&op_of<SpaceToDepth>(), space_to_depth_movement},
      {&op_of<Tile>(), repeat_movement<Tile>},
      {&op_of<Repeat>(), repeat_movement<Repeat>},
      {&op_of<BroadcastTo>(), spread_movement},
      {&op_of<BroadcastAxis>(), spread_movement},
      {&op_of<BroadcastLike>(), spread_movement},
      {&op_of<Slice>(), [](const NodeView& node) { return part<Slice>(node, node.inputs[0].shape); }},
      {&op_of<SliceAxis>(), [](const NodeView& node) { return ranged_part<SliceAxis>(node, node.inputs[0].shape); }},
      {&op_of<SliceLike>(),
       [](const NodeView& node) { return ranged_part<SliceLike>(node, node.inputs[0].shape, node.inputs[1].shape); }},
      {&op_of<Crop>(),
       [](const NodeView& node) { return ranged_part<Crop>(node, node.inputs[0].shape, node.outputs[0].shape); }},
      {&op_of<LinalgExtractdiag>(),
       [](const NodeView& node) {
         return matrix_diagonals(node.as<LinalgExtractdiag>().offset, node.inputs[0].shape, node);
       }},
  };
}

std::vector<MovingOperator> putting_operators() {
  return {
      {&op_of<SliceGrad>(), [](const NodeView& node) { return part<SliceGrad>(node, node.outputs[0].shape); }},
      {&op_of<SliceAxisGrad>(),
       [](const NodeView& node) { return ranged_part<SliceAxisGrad>(node, node.outputs[0].shape); }},
      {&op_of<SliceLikeGrad>(),
       [](const NodeView& node) {
         return ranged_part<SliceLikeGrad>(node, node.outputs[0].shape, node.inputs[2].shape);
       }},
      {&op_of<CropGrad>(),
       [](const NodeView& node) { return ranged_part<CropGrad>(node, node.outputs[0].shape, node.inputs[0].shape); }},
      {&op_of<LinalgMakediag>(),
       [](const NodeView& node) {
         return matrix_diagonals(node.as<LinalgMakediag>().offset, node.outputs[0].shape, node);
       }},
  };
}

}  // namespace symbind
