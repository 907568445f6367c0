#include "symbind/ops/split.h"

#include "symbind/backend/cuda/step.h"
#include "symbind/core/axis_view.h"
#include "symbind/passes/target.h"

namespace symbind::cuda_backend {
namespace {

// Every part is a run of bytes of each outer slice: a copy of a rectangle.
std::unique_ptr<Kernel> build_split(const NodeView& node) {
  const auto& p = node.as<SplitV2>();
  const Shape& data = node.inputs[0].shape;
  const auto view = view_along(data, data.axis(p.axis, node.where()));
  const size_t step = static_cast<size_t>(view.inner) * size_of(node.inputs[0].dtype);
  return make_step(node, [view, step, ranges = ranges_of(p, view.length, node.where())](const Args& args) {
    const auto whole = static_cast<size_t>(view.length) * step;
    for (size_t part = 0; part < ranges.size(); ++part) {
      const auto bytes = static_cast<size_t>(ranges[part].end - ranges[part].begin) * step;
      if (!args.outputs[part] || bytes == 0 || view.outer == 0) continue;
      cudaMemcpy2DAsync(args.outputs[part], bytes,
                        args.in<std::byte>(0) + static_cast<size_t>(ranges[part].begin) * step, whole, bytes,
                        static_cast<size_t>(view.outer), cudaMemcpyDeviceToDevice, stream_of(args));
    }
  });
}

// Pitches of a copy are limited to 2^31 bytes.
std::string refuse(const NodeView& node) {
  if (node.inputs[0].layout != Layout::plain) return "needs plain layouts";
  return node.inputs[0].bytes() < size_t{1} << 31 ? "" : "2^31 bytes and more";
}

}  // namespace

void add_split(ImplementationTable& table) { table.add<SplitV2>({"cuda", refuse, build_split}); }

}  // namespace symbind::cuda_backend
