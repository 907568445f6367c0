#include "symbind/passes/target.h"

#include "symbind/core/error.h"

namespace symbind {

std::string NodeView::where() const { return join("[", op.name, name.empty() ? "" : " ", name, "]"); }

const std::vector<Implementation>& ImplementationTable::of(const OpDef& op) const {
  static const std::vector<Implementation> none;
  const auto found = lists_.find(&op);
  return found == lists_.end() ? none : found->second;
}

Target& Target::get(Context context) {
  // Never destroyed, like the devices they serve.
  if (context.is_gpu()) {
    static Target& gpu_target = *make_gpu_target().release();
    return gpu_target;
  }
  static Target& cpu_target = *make_cpu_target().release();
  return cpu_target;
}

}  // namespace symbind
