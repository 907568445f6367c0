#include "symbind/ops/broadcast.h"

#include "symbind/backend/cpu/fill.h"
#include "symbind/backend/cpu/plain.h"
#include "symbind/backend/cpu/reduce_sums.h"
#include "symbind/backend/cpu/strided.h"
#include "symbind/backend/reduced_axes.h"
#include "symbind/passes/target.h"

namespace symbind::cpu_backend {
namespace {

std::unique_ptr<Kernel> build_sum_to_like(const NodeView& node) {
  const Shape& data = node.inputs[0].shape;
  const Shape& like = node.outputs[0].shape;
  if (data == like) return build_copy(node);
  return build_reduction(node, broadcast_axes(data, like), Reduction::sum);
}

std::unique_ptr<Kernel> build_spread_like(const NodeView& node) {
  if (node.inputs[0].shape == node.outputs[0].shape) return build_copy(node);
  return broadcast_kernel<1>(node, {node.inputs[0].shape}, [](auto) { return functions::Identity{}; });
}

template <class Entries>
void add_broadcasts(ImplementationTable& table, Entries entries) {
  functions::for_each(entries, [&]<class Entry>(Entry) {
    add_plain<Broadcast<Entry::name>>(table, [](const NodeView& node) {
      return broadcast_kernel<2>(node, {node.inputs[0].shape, node.inputs[1].shape},
                                 [](auto) { return typename Entry::Function{}; });
    });
  });
}

}  // namespace

void add_broadcast(ImplementationTable& table) {
  add_broadcasts(table, functions::BroadcastTable{});
  add_broadcasts(table, functions::ChoiceBroadcastTable{});
  add_plain<SumToLike>(table, build_sum_to_like);
  add_plain<SpreadLike>(table, build_spread_like);
}

}  // namespace symbind::cpu_backend
