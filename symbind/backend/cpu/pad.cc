// Each position of the result shows an element of the data, or the constant; the gradient sums, for each row of the
// data, over all rows that show it (backend/pad.h).
#include "symbind/ops/pad.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>
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
          const auto show = [&](int64_t position) {
            const int64_t index = last.shown_at(position);
            to[position] = index >= 0 ? from[index] : constant;
          };
          const int64_t first = last.inside_begin(), after = last.inside_end();
          for (int64_t position = 0; position < first; ++position) show(position);
          if (first < after) std::copy_n(from + (first - last.before), after - first, to + first);
          for (int64_t position = after; position < length; ++position) show(position);
        }
      });
    });
  });
}

// visit(row) for the rows of dy, along the last axis, that show the row of the data with these indices of the axes
// before it.
template <class T, class Visit>
void for_shown_rows(std::span<const PadAxis> axes, const int64_t* index, const T* dy, const Visit& visit) {
  if (axes.size() == 1) return visit(dy);
  for (int64_t n = 0, count = axes[0].position_count(*index); n < count; ++n)
    for_shown_rows(axes.subspan(1), index + 1, dy + axes[0].position(*index, n) * axes[0].step, visit);
}

// Adds a row of dy to that of the data, or assigns it if it is the first: the interior, then the borders.
template <class T, class C>
void add_shown(const PadAxis& axis, const T* dy, bool is_first, C* sums) {
  const int64_t first = axis.inside_begin(), after = axis.inside_end(), count = after - first;
  C* const shown = sums + (count > 0 ? first - axis.before : 0);
  if (is_first) {
    if (count < axis.extent) std::fill_n(sums, axis.extent, C(0));  // some are cut off
    for (int64_t i = 0; i < count; ++i) shown[i] = static_cast<C>(dy[first + i]);
  } else {
    for (int64_t i = 0; i < count; ++i) shown[i] = functions::add(shown[i], static_cast<C>(dy[first + i]));
  }
  if (axis.mode == PadAxis::Mode::constant) return;
  const auto add_border = [&](int64_t begin, int64_t end) {
    for (int64_t position = begin; position < end; ++position) {
      C& sum = sums[axis.shown_at(position)];
      sum = functions::add(sum, static_cast<C>(dy[position]));
    }
  };
  add_border(0, first);
  add_border(after, axis.length);
}

// The gradient of one row of the data; zeros where the row is cut off.
template <class T, class C>
void sum_row(std::span<const PadAxis> axes, const int64_t* index, const T* dy, C* sums) {
  bool is_first = true;
  for_shown_rows(axes, index, dy,
                 [&](const T* row) { add_shown(axes.back(), row, std::exchange(is_first, false), sums); });
  if (is_first) std::fill_n(sums, axes.back().extent, C(0));
}

std::unique_ptr<Kernel> build_pad_grad(const NodeView& node) {
  const Shape &data = node.outputs[0].shape, &padded = node.inputs[0].shape;
  const std::vector<PadAxis> axes = pad_axes(node.as<PadGrad>(), data, padded, padded);
  if (data.size() == 0) return make_kernel([](const Args&) {});
  const int64_t length = axes.back().extent, rows = data.size() / length;
  return visit_dtype(node.outputs[0].dtype, [&](auto type) -> std::unique_ptr<Kernel> {
    using T = typename decltype(type)::type;
    using C = functions::Wide<T>;
    return make_kernel([=](const Args& args) {
      const T* const dy = args.in<T>(0);
      T* const dx = args.out<T>();
      parallel_for(rows, std::max<int64_t>(1, element_grain / length), [&](int64_t begin, int64_t end) {
        std::array<int64_t, Shape::max_rank> index{};
        std::vector<C> sums(std::is_same_v<C, T> ? 0 : static_cast<size_t>(length));
        for (int64_t row = begin; row < end; ++row) {
          int64_t rest = row;
          for (size_t axis = axes.size() - 1; axis-- > 0; rest /= axes[axis].extent)
            index[axis] = rest % axes[axis].extent;
          T* const to = dx + row * length;
          if constexpr (std::is_same_v<C, T>) {
            sum_row(std::span(axes), index.data(), dy, to);
          } else {
            sum_row(std::span(axes), index.data(), dy, sums.data());
            for (int64_t i = 0; i < length; ++i) to[i] = convert<T>(sums[static_cast<size_t>(i)]);
          }
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
