#include "symbind/ops/cond.h"

#include "symbind/backend/cpu/branch_hooks.h"
#include "symbind/backend/cpu/plain.h"

namespace symbind::cpu_backend {

void add_cond(ImplementationTable& table) {
  add_plain<Cond>(table, [](const NodeView& node) { return build_cond(node, branch_hooks()); });
  add_plain<CondGrad>(table, [](const NodeView& node) { return build_cond_grad(node, branch_hooks()); });
}

}  // namespace symbind::cpu_backend
