#include "symbind/ops/amp.h"

#include "symbind/backend/converted_arrays.h"
#include "symbind/backend/cuda/copy.h"
#include "symbind/backend/cuda/device.h"
#include "symbind/backend/cuda/step.h"
#include "symbind/passes/target.h"

namespace symbind::cuda_backend {
namespace {

// Output i is input i in the type of the output. An output may be unused, and one may be the input's memory.
std::unique_ptr<Kernel> build_casts(const NodeView& node) {
  return make_step(node, [arrays = converted_arrays(node)](const Args& args) {
    for (size_t i = 0; i < arrays.size(); ++i) {
      const ConvertedArray& array = arrays[i];
      void* const out = args.outputs[i];
      if (!out || out == args.inputs[i] || array.count == 0) continue;
      if (array.from == array.to)
        cudaMemcpyAsync(out, args.inputs[i], static_cast<size_t>(array.count) * size_of(array.from),
                        cudaMemcpyDeviceToDevice, stream_of(args));
      else
        queue_cast(stream_of(args), out, array.to, args.inputs[i], array.from, array.count);
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
