#include "symbind/backend/control_flow.h"

#include "symbind/backend/cuda/kernels.cuh"
#include "symbind/backend/cuda/step.h"
#include "symbind/ops/control_flow.h"

namespace symbind::cuda_backend {
namespace {

__global__ void write_cursors(StepCursors cursors, const RandomCursor* run, RandomCursor* to) {
  for (int64_t step = first_element(); step < cursors.steps; step += element_step()) to[step] = cursors.at(*run, step);
}

std::string refuse(const NodeView& node) {
  for (const auto& input : node.inputs)
    if (input.layout != Layout::plain) return "needs plain layouts";
  return "";
}

std::unique_ptr<Kernel> build(const NodeView& node) {
  CudaDevice& device = CudaDevice::of(node.context);
  return build_foreach(node, [&device](const Args& args, const StepCursors& cursors, RandomCursor* to) {
    const Queueing queueing(device);
    write_cursors<<<blocks_for(cursors.steps), block_size, 0, stream_of(args)>>>(cursors, args.random, to);
    device.check_queued("[_foreach]");
  });
}

}  // namespace

void add_control_flow(ImplementationTable& table) {
  table.add<Foreach>({"cuda", refuse, build});
  table.add<ForeachGrad>({"cuda", refuse, build_foreach_grad});
}

}  // namespace symbind::cuda_backend
