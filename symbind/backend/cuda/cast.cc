#include "symbind/ops/cast.h"

#include "symbind/backend/cuda/copy.h"
#include "symbind/backend/cuda/device.h"
#include "symbind/backend/cuda/step.h"
#include "symbind/passes/target.h"

namespace symbind::cuda_backend {
namespace {

std::unique_ptr<Kernel> build_cast(const NodeView& node) {
  const DType from = node.inputs[0].dtype, to = node.outputs[0].dtype;
  if (from == to) return build_copy(node);
  return make_step(node, [from, to, count = node.outputs[0].shape.size()](const Args& args) {
    if (count > 0) queue_cast(stream_of(args), args.outputs[0], to, args.inputs[0], from, count);
  });
}

std::string refuse_cast(const NodeView& node) {
  return node.inputs[0].layout == node.outputs[0].layout ? "" : "arrays of different layouts";
}

}  // namespace

void add_cast(ImplementationTable& table) {
  table.add<Cast>({"cuda", refuse_cast, build_cast});
  table.add<CastLike>({"cuda", refuse_cast, build_cast});
}

}  // namespace symbind::cuda_backend
