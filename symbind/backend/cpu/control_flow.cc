#include "symbind/ops/control_flow.h"

#include "symbind/backend/cpu/branch_hooks.h"
#include "symbind/backend/cpu/plain.h"

namespace symbind::cpu_backend {

void write_cursors(const Args& args, const StepCursors& cursors, RandomCursor* to) {
  for (int64_t step = 0; step < cursors.steps; ++step) to[step] = cursors.at(*args.random, step);
}

BranchHooks branch_hooks() {
  return {write_cursors, [](const Args&, const void* number, DType dtype) {
            return visit_dtype(dtype,
                               [&]<class T>(std::type_identity<T>) { return *static_cast<const T*>(number) != T(0); });
          }};
}

void add_control_flow(ImplementationTable& table) {
  add_plain<Foreach>(table, [](const NodeView& node) { return build_foreach(node, write_cursors); });
  add_plain<ForeachGrad>(table, build_foreach_grad);
}

}  // namespace symbind::cpu_backend
