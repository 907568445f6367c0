// Each place of the result shows an element of the data, or the constant; the gradient sums, for each element, over all
// places that show it (backend/pad.h).
#include "symbind/ops/pad.h"

#include <algorithm>
#include <array>
#include <span>
#include <vector>

#include "symbind/backend/convert.h"
#include "symbind/backend/cpu/loops.h"
#include "symbind/backend/cpu/plain.h"
#include "symbind/backend/functions.h"
#include "symbind/backend/pad.h"
#include "symbind/backend/wide.h"
#include "symbind/passes/target.h"

namespace symbind::cpu_backend {
namespace {

std::unique_ptr<Kernel> build_pad(const NodeView& node) {
  const auto& p = node.as<Pad>();
  const Shape &data = node.inputs[0].shape, &out = node.outputs[0].shape;
  if (out.size() == 0) return make_kernel([](const Args&) {});
  const std::vector<PadAxis> axes = pad_axes(p, data, out, data);
  const int64_t length = axes.back().length, rows = out.size() / length;
  return visit_dtype(node.outputs[0].dtype, [&](auto type) -> std::unique_ptr<Kernel> {
    using T = typename decltype(type)::type;
    return make_kernel([=, constant = convert<T>(p.constant_value)](const Args& args) {
      const T* const x = args.in<T>(0);
      T* const y = args.out<T>();
      parallel_for(rows, std::max<int64_t>(1, element_grain / length), [&](int64_t begin, int64_t end) {
        const PadAxis& last = axes.back();
        for (int64_t row = begin; row < end; ++row) {
          int64_t at = 0, rest = row;
          bool inside = true;
          for (size_t axis = axes.size() - 1; axis-- > 0; rest /= axes[axis].length) {
            const int64_t index = axes[axis].shown_at(rest % axes[axis].length);
            inside = inside && index >= 0;
            at += index * axes[axis].step;
          }
          T* const to = y + row * length;
          if (!inside) {
            std::fill_n(to, length, constant);
            continue;
          }
          const T* const from = x + at;
          const auto show = [&](int64_t place) {
            const int64_t index = last.shown_at(place);
            to[place] = index >= 0 ? from[index] : constant;
          };
          for (int64_t place = 0; place < last.before; ++place) show(place);
          std::copy_n(from, last.extent, to + last.before);
          for (int64_t place = last.before + last.extent; place < length; ++place) show(place);
        }
      });
    });
  });
}

// The sum of dy over all places that show the element with the given indices.
template <class C, class T>
C sum_shown(std::span<const PadAxis> axes, const int64_t* index, const T* dy) {
  C sum = 0;
  const PadAxis& axis = axes[0];
  for (int64_t n = 0, places = axis.place_count(index[0]); n < places; ++n) {
    const T* const from = dy + axis.place(index[0], n) * axis.step;
    sum =
        functions::add(sum, axes.size() == 1 ? static_cast<C>(*from) : sum_shown<C>(axes.subspan(1), index + 1, from));
  }
  return sum;
}

std::unique_ptr<Kernel> build_pad_grad(const NodeView& node) {
  const Shape &data = node.outputs[0].shape, &padded = node.inputs[0].shape;
  const std::vector<PadAxis> axes = pad_axes(node.as<PadGrad>(), data, padded, padded);
  return visit_dtype(node.outputs[0].dtype, [&](auto type) -> std::unique_ptr<Kernel> {
    using T = typename decltype(type)::type;
    using C = functions::Wide<T>;
    return make_kernel([=, shape = data](const Args& args) {
      const T* const dy = args.in<T>(0);
      T* const dx = args.out<T>();
      parallel_for(shape.size(), element_grain / 8, [&](int64_t begin, int64_t end) {
        std::array<int64_t, Shape::max_rank> index{};
        for (int64_t i = begin; i < end; ++i) {
          int64_t rest = i;
          for (int axis = shape.rank(); axis-- > 0; rest /= shape[axis])
            index[static_cast<size_t>(axis)] = rest % shape[axis];
          dx[i] = convert<T>(sum_shown<C>(std::span(axes), index.data(), dy));
        }
      });
    });
  });
}

}  // namespace

void add_pad(ImplementationTable& table) {
  add_plain<Pad>(table, build_pad);
  add_plain<PadGrad>(table, build_pad_grad);
}

}  // namespace symbind::cpu_backend
