#include "symbind/ops/moments.h"

#include <algorithm>
#include <vector>

#include "symbind/backend/cpu/loops.h"
#include "symbind/backend/cpu/plain.h"
#include "symbind/backend/cpu/widened.h"
#include "symbind/ops/reduce.h"
#include "symbind/passes/target.h"

namespace symbind::cpu_backend {
namespace {

struct Axis {
  int64_t extent, step;
};

// visit(element) for all elements along these axes.
template <class Visit>
void for_elements_along(std::span<const Axis> axes, int64_t start, const Visit& visit) {
  if (axes.empty()) return visit(start);
  for (int64_t i = 0; i < axes[0].extent; ++i) for_elements_along(axes.subspan(1), start + i * axes[0].step, visit);
}

std::unique_ptr<Kernel> build_moments(const NodeView& node) {
  const Shape& data = node.inputs[0].shape;
  const auto reduced = reduced_axes(node.as<Moments>().axes, false, data, node.where());
  const auto strides = data.strides();
  std::vector<Axis> along, across;
  for (size_t axis = 0; axis < reduced.size(); ++axis)
    (reduced[axis] ? along : across).push_back({data[static_cast<int>(axis)], strides[axis]});
  const int64_t results = node.outputs[0].shape.size(), size = data.size();
  return widened_kernel(node, [=](auto type) {
    using C = typename decltype(type)::type;
    return [=](const C* const* in, C* const* out) {
      const C* const x = in[0];
      const int64_t each = results == 0 ? 0 : size / results;
      parallel_for(results, element_grain / 4 / (each + 1) + 1, [&](int64_t begin, int64_t end) {
        for (int64_t result = begin; result < end; ++result) {
          int64_t start = 0, rest = result;
          for (size_t axis = across.size(); axis-- > 0; rest /= across[axis].extent)
            start += rest % across[axis].extent * across[axis].step;
          double mean = 0, squares = 0;
          for_elements_along(along, start, [&](int64_t i) { mean += static_cast<double>(x[i]); });
          mean /= static_cast<double>(each);
          for_elements_along(along, start, [&](int64_t i) {
            const double away = static_cast<double>(x[i]) - mean;
            squares += away * away;
          });
          out[0][result] = static_cast<C>(mean);
          out[1][result] = static_cast<C>(squares / static_cast<double>(each));
        }
      });
    };
  });
}

}  // namespace

void add_moments(ImplementationTable& table) { add_plain<Moments>(table, build_moments); }

}  // namespace symbind::cpu_backend
