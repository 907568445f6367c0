// Padding reads through a table of indices for each axis; its gradient sums, for each element of the data, over all
// places that show it.
#include "symbind/ops/pad.h"

#include <algorithm>
#include <array>

#include "symbind/backend/convert.h"
#include "symbind/backend/cpu/families.h"
#include "symbind/backend/cpu/loops.h"
#include "symbind/backend/cpu/plain.h"
#include "symbind/backend/pointwise.h"

namespace symbind::cpu_backend {
namespace {

std::unique_ptr<Kernel> build_pad(const NodeView& node) {
  const auto& p = node.as<Pad>();
  const Shape &data = node.inputs[0].shape, &out = node.outputs[0].shape;
  if (out.size() == 0) return make_kernel([](const Args&) {});
  std::vector<std::vector<int64_t>> shows;  // offsets in the data; -1: the constant
  const auto strides = data.strides();
  for (int axis = 0; axis < data.rank(); ++axis) {
    shows.push_back(padded_indices(p, axis, data[axis]));
    for (int64_t& index : shows.back())
      if (index >= 0) index *= strides[static_cast<size_t>(axis)];
  }
  const int64_t length = out[out.rank() - 1], rows = out.size() / length;
  return visit_dtype(node.outputs[0].dtype, [&](auto type) -> std::unique_ptr<Kernel> {
    using T = typename decltype(type)::type;
    return make_kernel([=, constant = convert<T>(p.constant_value)](const Args& args) {
      const T* const x = args.in<T>(0);
      T* const y = args.out<T>();
      parallel_for(rows, std::max<int64_t>(1, element_grain / length), [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
          int64_t at = 0, rest = row;
          bool inside = true;
          for (size_t axis = shows.size() - 1; axis-- > 0;) {
            const auto extent = static_cast<int64_t>(shows[axis].size());
            const int64_t offset = shows[axis][static_cast<size_t>(rest % extent)];
            rest /= extent;
            inside = inside && offset >= 0;
            at += offset;
          }
          T* const to = y + row * length;
          for (int64_t i = 0; i < length; ++i) {
            const int64_t offset = shows.back()[static_cast<size_t>(i)];
            to[i] = inside && offset >= 0 ? x[at + offset] : constant;
          }
        }
      });
    });
  });
}

// The places along one axis of the result that show an element: offsets[first[i]] … offsets[first[i + 1]] for index i.
struct ShownAt {
  std::vector<int64_t> first, offsets;
};

// The sum of dy over all places that show the element with the given indices, from axis `axis` on.
template <class C, class T>
C sum_shown(const std::vector<ShownAt>& axes, const int64_t* index, size_t axis, const T* dy) {
  const ShownAt& shown = axes[axis];
  const auto i = static_cast<size_t>(index[axis]);
  C sum = 0;
  for (auto k = static_cast<size_t>(shown.first[i]); k < static_cast<size_t>(shown.first[i + 1]); ++k) {
    const T* const from = dy + shown.offsets[k];
    sum = pointwise::add(sum,
                         axis + 1 == axes.size() ? static_cast<C>(*from) : sum_shown<C>(axes, index, axis + 1, from));
  }
  return sum;
}

std::unique_ptr<Kernel> build_pad_grad(const NodeView& node) {
  const auto& p = node.as<PadGrad>();
  const Shape &data = node.outputs[0].shape, &padded = node.inputs[0].shape;
  const auto strides = padded.strides();
  std::vector<ShownAt> axes(static_cast<size_t>(data.rank()));
  for (int axis = 0; axis < data.rank(); ++axis) {
    const auto shows = padded_indices(p, axis, data[axis]);
    ShownAt& shown = axes[static_cast<size_t>(axis)];
    for (int64_t i = 0; i < data[axis]; ++i) {
      shown.first.push_back(static_cast<int64_t>(shown.offsets.size()));
      for (size_t k = 0; k < shows.size(); ++k)
        if (shows[k] == i) shown.offsets.push_back(static_cast<int64_t>(k) * strides[static_cast<size_t>(axis)]);
    }
    shown.first.push_back(static_cast<int64_t>(shown.offsets.size()));
  }
  return visit_dtype(node.outputs[0].dtype, [&](auto type) -> std::unique_ptr<Kernel> {
    using T = typename decltype(type)::type;
    using C = pointwise::Wide<T>;
    return make_kernel([=, shape = data](const Args& args) {
      const T* const dy = args.in<T>(0);
      T* const dx = args.out<T>();
      parallel_for(shape.size(), element_grain / 8, [&](int64_t begin, int64_t end) {
        std::array<int64_t, Shape::max_rank> index{};
        for (int64_t i = begin; i < end; ++i) {
          int64_t rest = i;
          for (int axis = shape.rank(); axis-- > 0; rest /= shape[axis])
            index[static_cast<size_t>(axis)] = rest % shape[axis];
          dx[i] = convert<T>(sum_shown<C>(axes, index.data(), 0, dy));
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
