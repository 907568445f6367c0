#include "symbind/ops/diag.h"

#include "symbind/backend/cpu/move.h"
#include "symbind/backend/cpu/plain.h"
#include "symbind/passes/target.h"

namespace symbind::cpu_backend {
namespace {

std::unique_ptr<Kernel> build(const NodeView& node, const DiagonalMovement& diagonal) {
  return diagonal.puts ? build_put(node, diagonal.movement) : build_take(node, diagonal.movement);
}

}  // namespace

void add_diag(ImplementationTable& table) {
  add_plain<Diag>(table, [](const NodeView& node) { return build(node, diag_movement(node)); });
  add_plain<DiagGrad>(table, [](const NodeView& node) { return build(node, diag_grad_movement(node)); });
}

}  // namespace symbind::cpu_backend
