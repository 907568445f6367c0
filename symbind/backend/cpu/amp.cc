#include "symbind/ops/amp.h"

#include <cstring>

#include "symbind/backend/cpu/convert_array.h"
#include "symbind/backend/cpu/fill.h"
#include "symbind/backend/cpu/plain.h"
#include "symbind/passes/target.h"

namespace symbind::cpu_backend {
namespace {

// Output i is input i in the type of the output. An output may be unused, and one may be the input's memory.
std::unique_ptr<Kernel> build_casts(const NodeView& node) {
  struct Part {
    DType from, to;
    int64_t count;
  };
  std::vector<Part> parts;
  for (size_t i = 0; i < node.outputs.size(); ++i)
    parts.push_back({node.inputs[i].dtype, node.outputs[i].dtype, node.outputs[i].shape.size()});
  return make_kernel([parts](const Args& args) {
    for (size_t i = 0; i < parts.size(); ++i) {
      const auto& [from, to, count] = parts[i];
      void* const out = args.outputs[i];
      if (!out || out == args.inputs[i]) continue;
      if (from == to)
        std::memcpy(out, args.inputs[i], static_cast<size_t>(count) * size_of(from));
      else
        convert_array(out, to, args.inputs[i], from, count);
    }
  });
}

}  // namespace

void add_amp(ImplementationTable& table) {
  add_plain<AmpCast>(table, build_casts);
  add_plain<AmpMulticast>(table, build_casts);
  add_plain<ScaleGradient>(table, build_copy);
}

}  // namespace symbind::cpu_backend
