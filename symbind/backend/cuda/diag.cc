#include "symbind/ops/diag.h"

#include "symbind/backend/cuda/move.h"
#include "symbind/passes/target.h"

namespace symbind::cuda_backend {
namespace {

template <class P>
void add(ImplementationTable& table, DiagonalMovement (*movement_of)(const NodeView& node)) {
  table.add<P>({"cuda", [=](const NodeView& node) { return refuse_movement(node, movement_of(node).movement); },
                [=](const NodeView& node) {
                  const DiagonalMovement diagonal = movement_of(node);
                  return diagonal.puts ? build_put(node, diagonal.movement) : build_take(node, diagonal.movement);
                }});
}

}  // namespace

void add_diag(ImplementationTable& table) {
  add<Diag>(table, diag_movement);
  add<DiagGrad>(table, diag_grad_movement);
}

}  // namespace symbind::cuda_backend
