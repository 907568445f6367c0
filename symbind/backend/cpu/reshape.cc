// Reshapes copy their bytes unchanged.
#include "symbind/ops/reshape.h"

#include "symbind/backend/cpu/fill.h"
#include "symbind/backend/cpu/plain.h"
#include "symbind/passes/target.h"

namespace symbind::cpu_backend {

void add_reshape(ImplementationTable& table) {
  add_plain<Flatten>(table, build_copy);
  add_plain<Reshape>(table, build_copy);
  add_plain<ReshapeLike>(table, build_copy);
  add_plain<ExpandDims>(table, build_copy);
  add_plain<Squeeze>(table, build_copy);
}

}  // namespace symbind::cpu_backend
