#include "symbind/backend/cpu/concat.h"

#include <algorithm>
#include <cstring>

#include "symbind/backend/cpu/loops.h"
#include "symbind/ops/concat.h"
#include "symbind/passes/target.h"

namespace symbind::cpu_backend {
namespace {

// Calls move(number of the part, its offset in the whole, its offset in itself, bytes).
template <class Move>
void for_pieces(const Joints& joints, Move move) {
  const auto& [rows, bytes, row_bytes] = joints;
  parallel_for(rows, std::max<int64_t>(1, element_grain * 4 / std::max<int64_t>(1, row_bytes)),
               [&, &bytes = bytes, row_bytes = row_bytes](int64_t begin, int64_t end) {
                 for (int64_t row = begin; row < end; ++row) {
                   int64_t at = row * row_bytes;
                   for (size_t part = 0; part < bytes.size(); ++part) {
                     if (bytes[part] > 0) move(part, at, row * bytes[part], static_cast<size_t>(bytes[part]));
                     at += bytes[part];
                   }
                 }
               });
}

std::unique_ptr<Kernel> build_join(const JointArrays& arrays) {
  return make_kernel([joints = arrays.joints()](const Args& args) {
    auto* to = args.out<std::byte>();
    for_pieces(joints, [&](size_t part, int64_t at, int64_t own, size_t bytes) {
      std::memcpy(to + at, args.in<std::byte>(part) + own, bytes);
    });
  });
}

std::unique_ptr<Kernel> build_split(const JointArrays& arrays) {
  return make_kernel([joints = arrays.joints()](const Args& args) {
    const auto* from = args.in<std::byte>(0);
    for_pieces(joints, [&](size_t part, int64_t at, int64_t own, size_t bytes) {
      if (args.outputs[part]) std::memcpy(args.out<std::byte>(part) + own, from + at, bytes);
    });
  });
}

JointArrays joined(const NodeView& node, int64_t axis, size_t parts) {
  return {node.outputs[0], node.inputs.first(parts), node.outputs[0].shape.axis(axis, node.where())};
}
JointArrays split(const NodeView& node, int64_t axis) {
  return {node.inputs[0], node.outputs, node.inputs[0].shape.axis(axis, node.where())};
}

}  // namespace

Joints JointArrays::joints() const {
  // With the channels last, joining along them is joining along the last axis in memory; blocked arrays are joined by
  // image, as plain ones are.
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

std::optional<LayoutWish> wish_along_channels(const NodeView& node, const JointArrays& arrays,
                                              std::span<const Tensor> asked) {
  if (arrays.whole.shape.rank() < 3 || arrays.axis != 1) return std::nullopt;
  for (const Tensor& tensor : asked) {
    if (tensor.layout == Layout::plain || tensor.shape.rank() < 3) continue;
    const int64_t block = block_of(tensor.layout);
    if (std::any_of(arrays.parts.begin(), arrays.parts.end(),
                    [&](const Tensor& part) { return part.shape[1] % block != 0; }))
      continue;
    return LayoutWish{std::vector(node.inputs.size(), tensor.layout), std::vector(node.outputs.size(), tensor.layout)};
  }
  return std::nullopt;
}

void add_concat(ImplementationTable& table) {
  const auto add = [&](const JoiningOperator& each, auto build, auto asked) {
    Implementation implementation{.name = "plain", .refuse = {}, .build = {}};
    implementation.build = [=](const NodeView& node) { return build(each.arrays(node)); };
    if (each.any_layout)
      implementation.likes = [=](const NodeView& node) {
        return wish_along_channels(node, each.arrays(node), asked(node));
      };
    table.add(*each.op, std::move(implementation));
  };
  for (const auto& each : joining_operators()) add(each, build_join, [](const NodeView& node) { return node.inputs; });
  for (const auto& each : splitting_operators())
    add(each, build_split, [](const NodeView& node) { return node.inputs.first(1); });
}

}  // namespace symbind::cpu_backend
