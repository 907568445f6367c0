#include "symbind/ops/while_loop.h"

#include "symbind/backend/cuda/branch_hooks.h"

namespace symbind::cuda_backend {

void add_while_loop(ImplementationTable& table) {
  table.add<WhileLoop>(
      {"cuda", needs_plain, [](const NodeView& node) { return build_while_loop(node, branch_hooks(node.context)); }});
  table.add<WhileLoopGrad>({"cuda", needs_plain, [](const NodeView& node) {
                              return build_while_loop_grad(node, branch_hooks(node.context));
                            }});
}

}  // namespace symbind::cuda_backend
