#include "symbind/ops/while_loop.h"

#include "symbind/backend/cpu/branch_hooks.h"
#include "symbind/backend/cpu/plain.h"

namespace symbind::cpu_backend {

void add_while_loop(ImplementationTable& table) {
  add_plain<WhileLoop>(table, [](const NodeView& node) { return build_while_loop(node, branch_hooks()); });
  add_plain<WhileLoopGrad>(table, [](const NodeView& node) { return build_while_loop_grad(node, branch_hooks()); });
}

}  // namespace symbind::cpu_backend
