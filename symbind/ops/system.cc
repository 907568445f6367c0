#include "symbind/ops/system.h"

#include "symbind/graph/define.h"

namespace symbind {
namespace {

OpDef define(Op<CrossDeviceCopy> op) {
  return op.doc("The array on another context.")
      .param(&CrossDeviceCopy::from, "from", "the context the array is on")
      .param(&CrossDeviceCopy::to, "to", "the context the copy is on");
}

OpDef define(Op<Reorder> op) { return op.doc("The array in another physical layout."); }

OpDef define(Op<Relabel> op) { return op.doc("The array under another layout with the same order.").view(); }

}  // namespace

void register_system(OpRegistry& registry) {
  add_internal<CrossDeviceCopy>(registry, "_CrossDeviceCopy", define);
  add_internal<Reorder>(registry, "_reorder", define);
  add_internal<Relabel>(registry, "_relabel", define);
}

}  // namespace symbind
