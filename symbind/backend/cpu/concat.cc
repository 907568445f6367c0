#include "symbind/ops/concat.h"

#include <algorithm>
#include <cstring>

#include "symbind/backend/concat.h"
#include "symbind/backend/cpu/loops.h"
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

}  // namespace

void add_concat(ImplementationTable& table) {
  const auto add = [&](const JoiningOperator& each, auto build, auto asked) {
    Implementation implementation{.name = "plain", .refuse = {}, .build = {}};
    implementation.build = [=](const NodeView& node) { return build(each.arrays(node)); };
    if (each.any_layout)
      implementation.preferred_layouts = [=](const NodeView& node) {
        return prefer_along_channels(node, each.arrays(node), asked(node));
      };
    table.add(*each.op, std::move(implementation));
  };
  for (const auto& each : joining_operators()) add(each, build_join, [](const NodeView& node) { return node.inputs; });
  for (const auto& each : splitting_operators())
    add(each, build_split, [](const NodeView& node) { return node.inputs.first(1); });
}

}  // namespace symbind::cpu_backend
