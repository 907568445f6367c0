#include "symbind/ops/amp.h"

#include <cstring>

#include "symbind/backend/array_casts.h"
#include "symbind/backend/cpu/convert_array.h"
#include "symbind/backend/cpu/fill.h"
#include "symbind/backend/cpu/plain.h"
#include "symbind/passes/target.h"

namespace symbind::cpu_backend {
namespace {

// Output i is input i in the type of the output. An output may be unused, and one may be the input's memory.
std::unique_ptr<Kernel> build_casts(const NodeView& node) {
  return make_kernel([casts = array_casts(node)](const Args& args) {
    for (size_t i = 0; i < casts.size(); ++i) {
      const auto& [from, to, count] = casts[i];
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
