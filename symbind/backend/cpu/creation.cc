#include "symbind/ops/creation.h"

#include "symbind/backend/cpu/families.h"
#include "symbind/backend/cpu/fill.h"
#include "symbind/backend/cpu/plain.h"

namespace symbind::cpu_backend {

void add_creation(ImplementationTable& table) {
  add_plain<Zeros>(table, [](const NodeView& node) { return build_fill(node, 0); });
  add_plain<Ones>(table, [](const NodeView& node) { return build_fill(node, 1); });
}

}  // namespace symbind::cpu_backend
