#include "symbind/backend/control_flow.h"

#include "symbind/backend/cpu/plain.h"
#include "symbind/ops/control_flow.h"

namespace symbind::cpu_backend {

void add_control_flow(ImplementationTable& table) {
  add_plain<Foreach>(table, [](const NodeView& node) {
    return build_foreach(node, [](const Args& args, const StepCursors& cursors, RandomCursor* to) {
      for (int64_t step = 0; step < cursors.steps; ++step) to[step] = cursors.at(*args.random, step);
    });
  });
  add_plain<ForeachGrad>(table, build_foreach_grad);
}

}  // namespace symbind::cpu_backend
