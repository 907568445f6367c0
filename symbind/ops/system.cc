#include "symbind/ops/system.h"

#include "symbind/graph/define.h"

namespace symbind {
namespace {

OpDef define(Op<CrossDeviceCopy> op) {
  return op.doc("The array on another context.")
      .param(&CrossDeviceCopy::from, "from", "the context the array is on")
      .param(&CrossDeviceCopy::to, "to", "the context the copy is on");
}

OpDef define(Op<Reorder> op) {
  return op.doc("The array in another physical layout.")
      .param(&Reorder::to_channels_last, "to_channels_last", "to channels last, else back to plain");
}

}  // namespace

void register_system(OpRegistry& registry) {
  add<CrossDeviceCopy>(registry, "_CrossDeviceCopy", define);
  add<Reorder>(registry, "_reorder", define);
}

}  // namespace symbind
