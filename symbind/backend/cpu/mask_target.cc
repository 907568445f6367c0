#include "symbind/backend/mask_target.h"

#include <algorithm>

#include "symbind/backend/cpu/loops.h"
#include "symbind/backend/cpu/plain.h"
#include "symbind/backend/cpu/widened.h"
#include "symbind/passes/target.h"

namespace symbind::cpu_backend {
namespace {

using namespace mask_target_rule;

template <class C>
struct Arrays {
  const C *rois, *masks, *matches, *classes;
  C *targets, *weights;  // null where it is not needed
};

// Both outputs of one region.
template <class C>
void find_target(const MaskSize& size, const Arrays<C>& arrays, int64_t index) {
  const C* const corners = arrays.rois + index * 4;
  const MaskRegion<C> region(size, arrays.matches[index], [corners](int i) { return corners[i]; });
  const int64_t cells = size.cells(), all = size.classes * cells;
  if (C* const targets = arrays.targets ? arrays.targets + index * all : nullptr) {
    const C* const plane =
        arrays.masks + (index / size.regions * size.masks + std::max<int64_t>(0, region.mask)) * size.space();
    for (int64_t cell = 0; cell < cells; ++cell)
      targets[cell] = region.mask < 0 ? C(0) : region.mean(size, cell, [plane](int64_t i) { return plane[i]; });
    for (int64_t k = 1; k < size.classes; ++k) std::copy_n(targets, cells, targets + k * cells);
  }
  if (C* const weights = arrays.weights ? arrays.weights + index * all : nullptr)
    for (int64_t k = 0; k < size.classes; ++k)
      std::fill_n(weights + k * cells, cells, arrays.classes[index] == static_cast<C>(k) ? C(1) : C(0));
}

std::unique_ptr<Kernel> build(const NodeView& node) {
  const MaskSize size(node.as<MaskTarget>(), node.inputs[1].shape);
  return widened_kernel(node, [size](auto type) {
    using C = typename decltype(type)::type;
    return [size](const C* const* in, C* const* out) {
      const Arrays<C> arrays{in[0], in[1], in[2], in[3], out[0], out[1]};
      const int64_t grain = element_grain / (size.cells() * (size.classes + 16) + 1) + 1;
      parallel_for(size.images * size.regions, grain, [&](int64_t begin, int64_t end) {
        for (int64_t index = begin; index < end; ++index) find_target(size, arrays, index);
      });
    };
  });
}

}  // namespace

void add_mask_target(ImplementationTable& table) { add_plain<MaskTarget>(table, build); }

}  // namespace symbind::cpu_backend
