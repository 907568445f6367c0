#include "symbind/ops/diag.h"

#include <utility>

#include "symbind/backend/cpu/move.h"
#include "symbind/backend/cpu/plain.h"
#include "symbind/passes/target.h"

namespace symbind::cpu_backend {
namespace {

Movement movement_of(const Diag& p, const Shape& whole, const NodeView& node) {
  Diagonals diagonals = diagonals_of(p, whole, node.where());
  return {std::move(diagonals.extents), std::move(diagonals.steps), diagonals.start};
}

std::unique_ptr<Kernel> build_forward(const NodeView& node) {
  const auto& p = node.as<Diag>();
  const Shape &data = node.inputs[0].shape, &result = node.outputs[0].shape;
  if (data.rank() == 1) return build_put(node, movement_of({.k = p.k}, result, node));
  return build_take(node, movement_of(p, data, node));
}

std::unique_ptr<Kernel> build_backward(const NodeView& node) {
  const auto& p = node.as<DiagGrad>();
  const Shape &dy = node.inputs[0].shape, &data = node.outputs[0].shape;
  if (data.rank() == 1) return build_take(node, movement_of({.k = p.k}, dy, node));
  return build_put(node, movement_of(p, data, node));
}

}  // namespace

void add_diag(ImplementationTable& table) {
  add_plain<Diag>(table, build_forward);
  add_plain<DiagGrad>(table, build_backward);
}

}  // namespace symbind::cpu_backend
