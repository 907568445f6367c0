#include "symbind/ops/dropout.h"

#include <algorithm>
#include <vector>

#include "symbind/backend/cpu/dropout.h"
#include "symbind/backend/cpu/plain.h"
#include "symbind/passes/target.h"

namespace symbind::cpu_backend {
namespace {

// For each axis of data, the step in the mask: zero where the mask has extent 1.
struct MaskIndex {
  Shape shape;
  std::vector<int64_t> steps;

  MaskIndex(const Shape& data, const Shape& mask) : shape(data), steps(static_cast<size_t>(data.rank())) {
    const auto strides = mask.strides();
    for (int axis = 0; axis < data.rank(); ++axis)
      steps[static_cast<size_t>(axis)] = mask[axis] == 1 ? 0 : strides[static_cast<size_t>(axis)];
  }
  int64_t operator()(int64_t element) const {
    int64_t index = 0;
    for (int axis = shape.rank(); axis-- > 0; element /= shape[axis])
      index += element % shape[axis] * steps[static_cast<size_t>(axis)];
    return index;
  }
};

template <class T>
std::unique_ptr<Kernel> build_for(const NodeView& node) {
  const auto& p = node.as<Dropout>();
  const Shape &data = node.outputs[0].shape, &mask_shape = node.outputs[1].shape;
  const int64_t count = data.size(), masks = mask_shape.size();
  const bool drop = drops(p, node.is_train), broadcast = data != mask_shape;
  return make_kernel(
      [=, probability = p.p, slot = static_cast<uint64_t>(std::max(node.random_slot, 0)),
       index = MaskIndex(data, mask_shape)](const Args& args) {
        const T* x = args.in<T>(0);
        T *y = args.out<T>(0), *mask = args.out<T>(1);
        if (!drop) {
          if (x != y) std::copy_n(x, count, y);
          std::fill_n(mask, masks, T(1.0f));
          return;
        }
        draw_mask(*args.random, args.random->draw + slot, probability, mask, masks);
        if (!broadcast) return apply_mask(x, mask, y, count);
        using C = compute_type<T>;
        parallel_for(count, element_grain, [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i)
            y[i] = static_cast<T>(static_cast<C>(x[i]) * static_cast<C>(mask[index(i)]));
        });
      },
      {.in_place = {{0, 0}}});
}

std::unique_ptr<Kernel> build_dropout(const NodeView& node) {
  return visit_floating(node.outputs[0].dtype,
                        [&](auto type) { return build_for<typename decltype(type)::type>(node); });
}

}  // namespace

void add_dropout(ImplementationTable& table) { add_plain<Dropout>(table, build_dropout); }

}  // namespace symbind::cpu_backend
