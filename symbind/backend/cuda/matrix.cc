// Operators that move bytes: views whose memory is not shared after all, casts, copies from other devices.
#include "symbind/ops/matrix.h"

#include "symbind/backend/cross_device_copy.h"
#include "symbind/backend/cuda/device.h"
#include "symbind/backend/cuda/step.h"
#include "symbind/ops/system.h"
#include "symbind/passes/target.h"

namespace symbind::cuda_backend {
namespace {

std::string accept(const NodeView&) { return ""; }

std::unique_ptr<Kernel> build_copy(const NodeView& node) {
  return make_step(node,
                   [bytes = node.outputs[0].bytes()](const Args& args) {
                     if (bytes > 0 && args.inputs[0] != args.outputs[0])
                       cudaMemcpyAsync(args.outputs[0], args.inputs[0], bytes, cudaMemcpyDeviceToDevice,
                                       stream_of(args));
                   },
                   {.in_place = {{0, 0}}});
}

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

void add_matrix(ImplementationTable& table) {
  for (const OpDef* op : OpRegistry::get().all())
    if (op->view) table.add(*op, {"cuda", accept, build_copy});
  table.add<Cast>({"cuda", refuse_cast, build_cast});
  table.add<CastLike>({"cuda", refuse_cast, build_cast});
  table.add<CrossDeviceCopy>({"copy", accept, build_cross_device_copy});
}

}  // namespace symbind::cuda_backend
