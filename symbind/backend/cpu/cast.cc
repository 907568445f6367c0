#include "symbind/ops/cast.h"

#include "symbind/backend/cpu/convert_array.h"
#include "symbind/backend/cpu/fill.h"
#include "symbind/backend/cpu/plain.h"
#include "symbind/passes/target.h"

namespace symbind::cpu_backend {
namespace {

std::unique_ptr<Kernel> build_cast(const NodeView& node) {
  const DType from = node.inputs[0].dtype, to = node.outputs[0].dtype;
  if (from == to) return build_copy(node);
  return make_kernel([from, to, count = node.outputs[0].shape.size()](const Args& args) {
    convert_array(args.outputs[0], to, args.inputs[0], from, count);
  });
}

}  // namespace

void add_cast(ImplementationTable& table) {
  add_plain<Cast>(table, build_cast);
  add_plain<CastLike>(table, build_cast);
}

}  // namespace symbind::cpu_backend
