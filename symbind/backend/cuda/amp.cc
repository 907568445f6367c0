#include "symbind/ops/amp.h"

#include "symbind/backend/array_casts.h"
#include "symbind/backend/cuda/copy.h"
#include "symbind/backend/cuda/device.h"
#include "symbind/backend/cuda/step.h"
#include "symbind/passes/target.h"

namespace symbind::cuda_backend {
namespace {

// Output i is input i in the type of the output. An output may be unused, and one may be the input's memory.
std::unique_ptr<Kernel> build_casts(const NodeView& node) {
  return make_step(node, [casts = array_casts(node)](const Args& args) {
    for (size_t i = 0; i < casts.size(); ++i) {
      const auto& [from, to, count] = casts[i];
      void* const out = args.outputs[i];
      if (!out || out == args.inputs[i] || count == 0) continue;
      if (from == to)
        cudaMemcpyAsync(out, args.inputs[i], static_cast<size_t>(count) * size_of(from), cudaMemcpyDeviceToDevice,
                        stream_of(args));
      else
        queue_cast(stream_of(args), out, to, args.inputs[i], from, count);
    }
  });
}

std::string refuse(const NodeView& node) {
  for (size_t i = 0; i < node.outputs.size(); ++i)
    if (node.inputs[i].layout != node.outputs[i].layout) return "arrays of different layouts";
  return "";
}

}  // namespace

void add_amp(ImplementationTable& table) {
  table.add<AmpCast>({"cuda", refuse, [](const NodeView& node) {
                        const bool is_cast = node.inputs[0].dtype != node.outputs[0].dtype;
                        return is_cast ? build_casts(node) : build_copy(node);
                      }});
  table.add<AmpMulticast>({"cuda", refuse, build_casts});
  table.add<ScaleGradient>({"cuda", refuse, build_copy});
}

}  // namespace symbind::cuda_backend
