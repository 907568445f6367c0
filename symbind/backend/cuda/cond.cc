#include "symbind/ops/cond.h"

#include "symbind/backend/cuda/branch_hooks.h"

namespace symbind::cuda_backend {

void add_cond(ImplementationTable& table) {
  table.add<Cond>(
      {"cuda", needs_plain, [](const NodeView& node) { return build_cond(node, branch_hooks(node.context)); }});
  table.add<CondGrad>(
      {"cuda", needs_plain, [](const NodeView& node) { return build_cond_grad(node, branch_hooks(node.context)); }});
}

}  // namespace symbind::cuda_backend
