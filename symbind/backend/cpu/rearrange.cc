#include "symbind/ops/rearrange.h"

#include "symbind/backend/cpu/fill.h"
#include "symbind/backend/cpu/plain.h"
#include "symbind/passes/target.h"

namespace symbind::cpu_backend {

void add_rearrange(ImplementationTable& table) {
  add_plain<ExpandDims>(table, build_copy);
  add_plain<Squeeze>(table, build_copy);
}

}  // namespace symbind::cpu_backend
