// One pass over the data, in whatever layout it has: memory is (outer, groups, inner, block), where the channels are
// groups × block. Plain arrays have blocks of one, arrays with the channels last have one group.
#include "symbind/ops/batch_norm_recompute.h"

#include <algorithm>
#include <limits>

#include "symbind/backend/cpu/loops.h"
#include "symbind/backend/cpu/plain.h"
#include "symbind/passes/target.h"

namespace symbind::cpu_backend {
namespace {

struct Arrangement {
  int64_t outer, groups, inner, block;
};

Arrangement arrangement_of(const BatchNormRecompute& p, const Tensor& data) {
  BatchNorm norm;
  norm.axis = p.axis;
  const BatchNormSize size = size_of(norm, data.shape);
  if (data.layout == Layout::channels_last) return {size.per_channel(), 1, 1, size.channels};
  if (size.inner == 1) return {size.outer, 1, 1, size.channels};
  const int64_t block = block_of(data.layout);
  return {size.outer, size.channels / block, size.inner, block};
}

// Preserves NaN.
template <class C>
C not_below(C least, C value) {
  return value < least ? least : value;
}

template <class T>
std::unique_ptr<Kernel> build(const NodeView& node) {
  using C = compute_type<T>;
  const Arrangement size = arrangement_of(node.as<BatchNormRecompute>(), node.inputs[0]);
  const int64_t channels = size.groups * size.block, row = size.inner * size.block;
  const bool fix_gamma = node.as<BatchNormRecompute>().fix_gamma;
  const C least = node.as<BatchNormRecompute>().relu ? C(0) : -std::numeric_limits<C>::infinity();
  return make_kernel(
      [=](const Args& args) {
        const T* x = args.in<T>(0);
        const C *gamma = args.in<C>(1), *beta = args.in<C>(2), *mean = args.in<C>(3), *deviation = args.in<C>(4);
        T* y = args.out<T>();
        C* scale = static_cast<C*>(args.scratch);
        for (int64_t c = 0; c < channels; ++c) scale[c] = fix_gamma ? deviation[c] : gamma[c] * deviation[c];
        for_elements(
            size.outer * size.groups,
            [=](int64_t begin, int64_t end) {
              for (int64_t r = begin; r < end; ++r) {
                const int64_t channel = r % size.groups * size.block;
                const C *middle = mean + channel, *factor = scale + channel, *shift = beta + channel;
                const T* from = x + r * row;
                T* to = y + r * row;
                if (size.block == 1) {
                  const C m = *middle, f = *factor, s = *shift;
                  for (int64_t i = 0; i < row; ++i)
                    to[i] = static_cast<T>(not_below(least, (static_cast<C>(from[i]) - m) * f + s));
                } else {
                  for (int64_t i = 0; i < size.inner; ++i, from += size.block, to += size.block)
                    for (int64_t j = 0; j < size.block; ++j)
                      to[j] = static_cast<T>(
                          not_below(least, (static_cast<C>(from[j]) - middle[j]) * factor[j] + shift[j]));
                }
              }
            },
            element_grain / (row + 1) + 1);
      },
      {.in_place = {{0, 0}}, .scratch_bytes = static_cast<size_t>(std::max<int64_t>(channels, 1)) * sizeof(C)});
}

// Follows the data; statistics and parameters have one axis and no layout.
std::optional<PreferredLayouts> preferred_layouts(const NodeView& node) {
  const Layout layout = node.inputs[0].layout;
  if (layout == Layout::plain || node.inputs[0].shape.axis(node.as<BatchNormRecompute>().axis, node.where()) != 1)
    return std::nullopt;
  PreferredLayouts preferred{std::vector(node.inputs.size(), Layout::plain), {layout}};
  preferred.inputs[0] = layout;
  return preferred;
}

}  // namespace

void add_batch_norm_recompute(ImplementationTable& table) {
  Implementation implementation;
  implementation.name = "plain";
  implementation.refuse = [](const NodeView&) { return std::string(); };
  implementation.build = [](const NodeView& node) {
    return visit_floating(node.inputs[0].dtype, [&](auto type) { return build<typename decltype(type)::type>(node); });
  };
  implementation.preferred_layouts = preferred_layouts;
  table.add<BatchNormRecompute>(std::move(implementation));
}

}  // namespace symbind::cpu_backend
