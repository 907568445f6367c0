#include "symbind/ops/reset_arrays.h"

#include "symbind/graph/define.h"

namespace symbind {
namespace {

OpDef define(Op<ResetArrays> op) {
  return op.doc("Sets all input arrays, of any shapes and types, to 0 in place. There is no output.")
      .param(&ResetArrays::num_arrays, "num_arrays", "number of input arrays", at_least(1))
      .variadic(&ResetArrays::num_arrays, "num_arrays")
      .inputs(&ResetArrays::num_arrays, numbered("array_"))
      .outputs(Names{})
      .also_updates([](const ResetArrays&, size_t) { return true; })
      .infer_shape([](const ResetArrays&, Shapes&) {})
      .infer_type([](const ResetArrays&, Types&) {});
}

}  // namespace

void register_reset_arrays(OpRegistry& registry) { add<ResetArrays>(registry, "reset_arrays", define); }

}  // namespace symbind
