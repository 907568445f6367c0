#include "symbind/backend/concat.h"

#include <algorithm>

#include "symbind/ops/concat.h"

namespace symbind {
namespace {

JointArrays joined(const NodeView& node, int64_t axis, size_t parts) {
  return {node.outputs[0], node.inputs.first(parts), node.outputs[0].shape.axis(axis, node.where())};
}
JointArrays split(const NodeView& node, int64_t axis) {
  return {node.inputs[0], node.outputs, node.inputs[0].shape.axis(axis, node.where())};
}

}  // namespace

Joints JointArrays::joints() const {
  // With channels last, concatenation along channels is along the last axis in memory; blocked arrays are concatenated
  // per image, as plain ones are.
  const Shape& shape = whole.shape;
  const bool joins_pixels = whole.layout == Layout::channels_last && axis == 1;
  Joints made{joins_pixels ? shape[0] * shape.size(2, shape.rank()) : shape.size(0, axis), {}, 0};
  for (const Tensor& part : parts) {
    made.bytes.push_back(made.rows > 0 ? static_cast<int64_t>(part.bytes()) / made.rows : 0);
    made.row_bytes += made.bytes.back();
  }
  return made;
}

std::vector<JoiningOperator> joining_operators() {
  return {
      {&op_of<Concat>(), [](const NodeView& node) { return joined(node, node.as<Concat>().dim, node.inputs.size()); },
       true},
      {&op_of<Stack>(), [](const NodeView& node) { return joined(node, node.as<Stack>().axis, node.inputs.size()); }},
      {&op_of<SliceChannelGrad>(),
       [](const NodeView& node) { return joined(node, node.as<SliceChannelGrad>().axis, node.inputs.size() - 1); }},
  };
}

std::vector<JoiningOperator> splitting_operators() {
  return {
      {&op_of<ConcatGrad>(), [](const NodeView& node) { return split(node, node.as<ConcatGrad>().dim); }, true},
      {&op_of<StackGrad>(), [](const NodeView& node) { return split(node, node.as<StackGrad>().axis); }},
      {&op_of<SliceChannel>(), [](const NodeView& node) { return split(node, node.as<SliceChannel>().axis); }},
  };
}

std::optional<PreferredLayouts> prefer_along_channels(const NodeView& node, const JointArrays& arrays,
                                                      std::span<const Tensor> asked) {
  if (arrays.whole.shape.rank() < 3 || arrays.axis != 1) return std::nullopt;
  for (const Tensor& tensor : asked) {
    if (tensor.layout == Layout::plain || tensor.shape.rank() < 3) continue;
    const int64_t block = block_of(tensor.layout);
    if (std::any_of(arrays.parts.begin(), arrays.parts.end(),
                    [&](const Tensor& part) { return part.shape[1] % block != 0; }))
      continue;
    return PreferredLayouts{std::vector(node.inputs.size(), tensor.layout),
                            std::vector(node.outputs.size(), tensor.layout)};
  }
  return std::nullopt;
}

}  // namespace symbind
