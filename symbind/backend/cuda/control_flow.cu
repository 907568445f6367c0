#include "symbind/ops/control_flow.h"

#include "symbind/backend/cuda/branch_hooks.h"
#include "symbind/backend/cuda/kernels.cuh"
#include "symbind/backend/cuda/step.h"

namespace symbind::cuda_backend {
namespace {

__global__ void write_cursors(StepCursors cursors, const RandomCursor* run, RandomCursor* to) {
  for (int64_t step = first_element(); step < cursors.steps; step += element_step()) to[step] = cursors.at(*run, step);
}

}  // namespace

WriteCursors cursor_writer(Context context) {
  return [&device = CudaDevice::of(context)](const Args& args, const StepCursors& cursors, RandomCursor* to) {
    const Queueing queueing(device);
    write_cursors<<<blocks_for(cursors.steps), block_size, 0, stream_of(args)>>>(cursors, args.random, to);
    device.check_queued("[loop]");
  };
}

BranchHooks branch_hooks(Context context) {
  const auto read_truth = [&device = CudaDevice::of(context)](const Args& args, const void* number, DType dtype) {
    alignas(8) std::byte value[8] = {};
    {
      const Queueing queueing(device);
      device.check(cudaMemcpyAsync(value, number, size_of(dtype), cudaMemcpyDeviceToHost, stream_of(args)),
                   "[condition]");
      device.check(cudaStreamSynchronize(stream_of(args)), "[condition]");
    }
    return visit_dtype(dtype,
                       [&]<class T>(std::type_identity<T>) { return *reinterpret_cast<const T*>(value) != T(0); });
  };
  return {cursor_writer(context), read_truth, false};
}

std::string needs_plain(const NodeView& node) {
  for (const auto& input : node.inputs)
    if (input.layout != Layout::plain) return "needs plain layouts";
  return "";
}

void add_control_flow(ImplementationTable& table) {
  table.add<Foreach>(
      {"cuda", needs_plain, [](const NodeView& node) { return build_foreach(node, cursor_writer(node.context)); }});
  table.add<ForeachGrad>({"cuda", needs_plain, build_foreach_grad});
}

}  // namespace symbind::cuda_backend
