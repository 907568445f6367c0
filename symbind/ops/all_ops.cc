#include "symbind/graph/op.h"

namespace symbind {

#define SYMBIND_FAMILY(family) void register_##family(OpRegistry& registry);
#include "symbind/families/ops.inc"
#undef SYMBIND_FAMILY

void register_all_ops(OpRegistry& registry) {
#define SYMBIND_FAMILY(family) register_##family(registry);
#include "symbind/families/ops.inc"
#undef SYMBIND_FAMILY
}

}  // namespace symbind
