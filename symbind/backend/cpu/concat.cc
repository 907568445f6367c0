#include "symbind/ops/concat.h"

#include <algorithm>
#include <cstring>

#include "symbind/backend/cpu/families.h"
#include "symbind/backend/cpu/loops.h"
#include "symbind/backend/cpu/plain.h"

namespace symbind::cpu_backend {
namespace {

// The joined array as rows: everything before the axis counts rows, and a row holds so many bytes of each part.
struct Joints {
  int64_t rows;
  std::vector<int64_t> bytes;
  int64_t row_bytes = 0;

  Joints(const Tensor& whole, int axis, std::span<const Tensor> parts) : rows(rows_before(whole, axis)) {
    for (const Tensor& part : parts) {
      bytes.push_back(rows > 0 ? static_cast<int64_t>(part.bytes()) / rows : 0);
      row_bytes += bytes.back();
    }
  }

  // With the channels last, joining along them is joining along the last axis in memory; blocked arrays are joined by
  // image, as plain ones are.
  static int64_t rows_before(const Tensor& whole, int axis) {
    const Shape& shape = whole.shape;
    if (whole.layout == Layout::channels_last && axis == 1) return shape[0] * shape.size(2, shape.rank());
    return shape.size(0, axis);
  }

  // Calls move(number of the part, its offset in the whole, its offset in itself, bytes).
  template <class Move>
  void for_pieces(Move move) const {
    parallel_for(rows, std::max<int64_t>(1, element_grain * 4 / std::max<int64_t>(1, row_bytes)),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t row = begin; row < end; ++row) {
                     int64_t at = row * row_bytes;
                     for (size_t part = 0; part < bytes.size(); ++part) {
                       if (bytes[part] > 0) move(part, at, row * bytes[part], static_cast<size_t>(bytes[part]));
                       at += bytes[part];
                     }
                   }
                 });
  }
};

std::unique_ptr<Kernel> build_join(const NodeView& node, int64_t dim, size_t parts) {
  const Tensor& whole = node.outputs[0];
  return make_kernel(
      [joints = Joints(whole, whole.shape.axis(dim, node.where()), node.inputs.first(parts))](const Args& args) {
        auto* to = args.out<std::byte>();
        joints.for_pieces([&](size_t part, int64_t at, int64_t own, size_t bytes) {
          std::memcpy(to + at, args.in<std::byte>(part) + own, bytes);
        });
      });
}

std::unique_ptr<Kernel> build_split(const NodeView& node, int64_t dim) {
  const Tensor& whole = node.inputs[0];
  return make_kernel([joints = Joints(whole, whole.shape.axis(dim, node.where()), node.outputs)](const Args& args) {
    const auto* from = args.in<std::byte>(0);
    joints.for_pieces([&](size_t part, int64_t at, int64_t own, size_t bytes) {
      if (args.outputs[part]) std::memcpy(args.out<std::byte>(part) + own, from + at, bytes);
    });
  });
}

// Along channels the parts may lie in any layout they share, if that has whole blocks of each part.
std::optional<LayoutWish> likes_channels(const NodeView& node, int64_t dim, const Tensor& whole,
                                         std::span<const Tensor> parts, std::span<const Tensor> asked) {
  if (whole.shape.rank() < 3 || whole.shape.axis(dim, node.where()) != 1) return std::nullopt;
  for (const Tensor& tensor : asked) {
    if (tensor.layout == Layout::plain || tensor.shape.rank() < 3) continue;
    const int64_t block = block_of(tensor.layout);
    if (std::any_of(parts.begin(), parts.end(), [&](const Tensor& part) { return part.shape[1] % block != 0; }))
      continue;
    return LayoutWish{std::vector(node.inputs.size(), tensor.layout), std::vector(node.outputs.size(), tensor.layout)};
  }
  return std::nullopt;
}

}  // namespace

void add_concat(ImplementationTable& table) {
  const auto join = [](const NodeView& node) { return build_join(node, node.as<Concat>().dim, node.inputs.size()); };
  const auto split = [](const NodeView& node) { return build_split(node, node.as<ConcatGrad>().dim); };
  const auto join_likes = [](const NodeView& node) {
    return likes_channels(node, node.as<Concat>().dim, node.outputs[0], node.inputs, node.inputs);
  };
  const auto split_likes = [](const NodeView& node) {
    return likes_channels(node, node.as<ConcatGrad>().dim, node.inputs[0], node.outputs, node.inputs.first(1));
  };
  table.add<Concat>({.name = "plain", .refuse = {}, .build = join, .likes = join_likes});
  table.add<ConcatGrad>({.name = "plain", .refuse = {}, .build = split, .likes = split_likes});
  add_plain<Stack>(table,
                   [](const NodeView& node) { return build_join(node, node.as<Stack>().axis, node.inputs.size()); });
  add_plain<StackGrad>(table, [](const NodeView& node) { return build_split(node, node.as<StackGrad>().axis); });
  add_plain<SliceChannel>(table, [](const NodeView& node) { return build_split(node, node.as<SliceChannel>().axis); });
  add_plain<SliceChannelGrad>(table, [](const NodeView& node) {
    return build_join(node, node.as<SliceChannelGrad>().axis, node.inputs.size() - 1);
  });
}

}  // namespace symbind::cpu_backend
