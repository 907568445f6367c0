#include "symbind/backend/cuda/copy.h"

#include "symbind/backend/cuda/step.h"

namespace symbind::cuda_backend {

std::unique_ptr<Kernel> build_copy(const NodeView& node) {
  return make_step(node,
                   [bytes = node.outputs[0].bytes()](const Args& args) {
                     if (bytes > 0 && args.inputs[0] != args.outputs[0])
                       cudaMemcpyAsync(args.outputs[0], args.inputs[0], bytes, cudaMemcpyDeviceToDevice,
                                       stream_of(args));
                   },
                   {.in_place = {{0, 0}}});
}

// Views copy if they do not share memory.
void add_views(ImplementationTable& table) {
  for (const OpDef* op : OpRegistry::get().all())
    if (op->view) table.add(*op, {"cuda", [](const NodeView&) { return std::string(); }, build_copy});
}

}  // namespace symbind::cuda_backend
