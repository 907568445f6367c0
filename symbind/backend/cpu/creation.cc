#include "symbind/ops/creation.h"

#include <algorithm>

#include "symbind/backend/convert.h"
#include "symbind/backend/cpu/fill.h"
#include "symbind/backend/cpu/loops.h"
#include "symbind/backend/cpu/plain.h"
#include "symbind/passes/target.h"

namespace symbind::cpu_backend {
namespace {

// In arithmetic of the result's type, as in MXNet and NumPy: integers from 0 in steps of 1.5 go in steps of 1. Unsigned
// numbers wrap around where signed ones would be undefined.
std::unique_ptr<Kernel> build_arange(const NodeView& node) {
  const auto& p = node.as<Arange>();
  const double start = p.stop || p.infer_range ? p.start.get() : 0;
  return visit_dtype(node.outputs[0].dtype, [&](auto type) -> std::unique_ptr<Kernel> {
    using T = typename decltype(type)::type;
    const int64_t count = node.outputs[0].shape.size();
    if constexpr (std::is_integral_v<T>) {
      const auto first = static_cast<uint64_t>(convert<int64_t>(start));
      const auto step = static_cast<uint64_t>(convert<int64_t>(p.step));
      return numbers_kernel<T>(count, [=, repeat = p.repeat](int64_t i) {
        return static_cast<int64_t>(first + static_cast<uint64_t>(i / repeat) * step);
      });
    } else {
      using C = compute_type<T>;
      const auto first = static_cast<C>(start), step = static_cast<C>(p.step);
      return numbers_kernel<T>(count,
                               [=, repeat = p.repeat](int64_t i) { return first + static_cast<C>(i / repeat) * step; });
    }
  });
}

std::unique_ptr<Kernel> build_linspace(const NodeView& node) {
  const auto& p = node.as<Linspace>();
  const int64_t steps = std::max<int64_t>(1, p.num - (p.endpoint ? 1 : 0));
  const double step = (p.stop - p.start) / static_cast<double>(steps);
  return visit_dtype(node.outputs[0].dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    return numbers_kernel<T>(p.num, [=, start = p.start](int64_t i) { return start + static_cast<double>(i) * step; });
  });
}

std::unique_ptr<Kernel> build_eye(const NodeView& node) {
  const Shape& shape = node.outputs[0].shape;
  return visit_dtype(node.outputs[0].dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    return numbers_kernel<T>(shape.size(), [columns = shape[1], k = node.as<Eye>().k](int64_t i) {
      const int64_t row = i / columns, column = i % columns;
      return column - row == k ? 1.0f : 0.0f;
    });
  });
}

}  // namespace

void add_creation(ImplementationTable& table) {
  add_plain<Zeros>(table, [](const NodeView& node) { return build_fill(node, 0); });
  add_plain<Ones>(table, [](const NodeView& node) { return build_fill(node, 1); });
  add_plain<Full>(table, [](const NodeView& node) { return build_fill(node, *node.as<Full>().value); });
  add_plain<Arange>(table, build_arange);
  add_plain<Linspace>(table, build_linspace);
  add_plain<Eye>(table, build_eye);
}

}  // namespace symbind::cpu_backend
