#include "symbind/ops/amp.h"

#include <cstring>

#include "symbind/backend/converted_arrays.h"
#include "symbind/backend/cpu/convert_array.h"
#include "symbind/backend/cpu/fill.h"
#include "symbind/backend/cpu/plain.h"
#include "symbind/passes/target.h"

namespace symbind::cpu_backend {
namespace {

// Output i is input i in the type of the output. An output may be unused, and one may be the input's memory.
std::unique_ptr<Kernel> build_casts(const NodeView& node) {
  return make_kernel([arrays = converted_arrays(node)](const Args& args) {
    for (size_t i = 0; i < arrays.size(); ++i) {
      const ConvertedArray& array = arrays[i];
      void* const out = args.outputs[i];
      if (!out || out == args.inputs[i]) continue;
      if (array.from == array.to)
        std::memcpy(out, args.inputs[i], static_cast<size_t>(array.count) * size_of(array.from));
      else
        convert_array(out, array.to, args.inputs[i], array.from, array.count);
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
