#include "symbind/ops/amp.h"

#include "symbind/backend/cuda/copy.h"
#include "symbind/backend/cuda/device.h"
#include "symbind/backend/cuda/step.h"
#include "symbind/passes/target.h"

namespace symbind::cuda_backend {
namespace {

std::unique_ptr<Kernel> build_amp_cast(const NodeView& node) {
  const DType from = node.inputs[0].dtype, to = node.outputs[0].dtype;
  if (from == to) return build_copy(node);
  return make_step(node, [from, to, count = node.outputs[0].shape.size()](const Args& args) {
    if (count > 0) queue_cast(stream_of(args), args.outputs[0], to, args.inputs[0], from, count);
  });
}

std::string refuse_amp_cast(const NodeView& node) {
  return node.inputs[0].layout == node.outputs[0].layout ? "" : "arrays of different layouts";
}

}  // namespace

void add_amp(ImplementationTable& table) { table.add<AmpCast>({"cuda", refuse_amp_cast, build_amp_cast}); }

}  // namespace symbind::cuda_backend
