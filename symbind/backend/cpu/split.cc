#include "symbind/ops/split.h"

#include <cstring>

#include "symbind/backend/cpu/loops.h"
#include "symbind/backend/cpu/plain.h"
#include "symbind/core/axis_view.h"
#include "symbind/passes/target.h"

namespace symbind::cpu_backend {
namespace {

// Every part is a run of bytes of each outer slice.
std::unique_ptr<Kernel> build_split(const NodeView& node) {
  const auto& p = node.as<SplitV2>();
  const Shape& data = node.inputs[0].shape;
  const auto view = view_along(data, data.axis(p.axis, node.where()));
  const size_t step = static_cast<size_t>(view.inner) * size_of(node.inputs[0].dtype);
  return make_kernel([=, ranges = ranges_of(p, view.length, node.where())](const Args& args) {
    const auto whole = static_cast<size_t>(view.length) * step;
    for (size_t part = 0; part < ranges.size(); ++part) {
      auto* const out = args.out<std::byte>(part);
      const auto bytes = static_cast<size_t>(ranges[part].end - ranges[part].begin) * step;
      if (!out || bytes == 0) continue;
      const auto* const in = args.in<std::byte>(0) + static_cast<size_t>(ranges[part].begin) * step;
      parallel_for(view.outer, static_cast<int64_t>(4 * element_grain / (bytes + 64)) + 1,
                   [=](int64_t begin, int64_t end) {
                     for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i)
                       std::memcpy(out + i * bytes, in + i * whole, bytes);
                   });
    }
  });
}

}  // namespace

void add_split(ImplementationTable& table) { add_plain<SplitV2>(table, build_split); }

}  // namespace symbind::cpu_backend
