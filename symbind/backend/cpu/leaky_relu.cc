#include "symbind/ops/leaky_relu.h"

#include <algorithm>

#include "symbind/backend/cpu/loops.h"
#include "symbind/backend/cpu/map.h"
#include "symbind/backend/cpu/plain.h"
#include "symbind/backend/cpu/widened.h"
#include "symbind/core/axis_view.h"
#include "symbind/passes/target.h"

namespace symbind::cpu_backend {
namespace {

// ---- prelu ----------------------------------------------------------------------------------------------------------

// Data around the axis of its channels, with one slope for each channel or for all.
struct Channels : AxisView {
  int64_t slopes;
  Channels(const Shape& data, const Shape& gamma)
      : AxisView(view_along(data, data.rank() > 1 ? 1 : 0)), slopes(gamma.size()) {}
  int64_t slope_of(int64_t row) const { return slopes == 1 ? 0 : row % length; }
};

std::unique_ptr<Kernel> build_prelu(const NodeView& node) {
  const Channels channels(node.inputs[0].shape, node.inputs[1].shape);
  return widened_kernel(node, [=](auto type) {
    using C = typename decltype(type)::type;
    return [=](const C* const* in, C* const* out) {
      const C *x = in[0], *gamma = in[1];
      C* y = out[0];
      for_elements(
          channels.outer * channels.length,
          [=](int64_t begin, int64_t end) {
            for (int64_t row = begin; row < end; ++row) {
              const C slope = gamma[channels.slope_of(row)];
              for (int64_t i = row * channels.inner; i < (row + 1) * channels.inner; ++i)
                y[i] = functions::Leaky{}(x[i], slope);
            }
          },
          element_grain / std::max<int64_t>(1, channels.inner) + 1);
    };
  });
}

// Each row's part of gamma's gradient is stored in scratch until all are summed, in order.
std::unique_ptr<Kernel> build_prelu_grad(const NodeView& node) {
  const Channels channels(node.inputs[1].shape, node.inputs[2].shape);
  const int64_t rows = channels.outer * channels.length;
  return widened_kernel(
      node,
      [=](auto type) {
        using C = typename decltype(type)::type;
        return [=](const C* const* in, C* const* out) {
          const C *dy = in[0], *x = in[1], *gamma = in[2];
          C *dx = out[0], *dgamma = out[1], *parts = out[2];
          for_elements(
              rows,
              [=](int64_t begin, int64_t end) {
                for (int64_t row = begin; row < end; ++row) {
                  const C slope = gamma[channels.slope_of(row)];
                  double sum = 0;
                  for (int64_t i = row * channels.inner; i < (row + 1) * channels.inner; ++i) {
                    dx[i] = functions::LeakyGrad{}(dy[i], x[i], slope);
                    if (!(x[i] > C(0))) sum += static_cast<double>(dy[i] * x[i]);
                  }
                  parts[row] = static_cast<C>(sum);
                }
              },
              element_grain / std::max<int64_t>(1, channels.inner) + 1);
          std::vector<double> sums(static_cast<size_t>(channels.slopes), 0.0);
          for (int64_t row = 0; row < rows; ++row)
            sums[static_cast<size_t>(channels.slope_of(row))] += static_cast<double>(parts[row]);
          for (size_t k = 0; k < sums.size(); ++k) dgamma[k] = static_cast<C>(sums[k]);
        };
      },
      rows + 1);
}

// ---- rrelu ----------------------------------------------------------------------------------------------------------

template <class T>
std::unique_ptr<Kernel> build_rrelu(const NodeView& node) {
  using C = compute_type<T>;
  const auto& p = node.as<LeakyReLU>();
  const int64_t count = node.outputs[0].shape.size();
  const C low = static_cast<C>(p.lower_bound), width = static_cast<C>(p.upper_bound - p.lower_bound);
  return make_kernel([=, is_train = node.is_train,
                      slot = static_cast<uint64_t>(std::max(node.random_slot, 0))](const Args& args) {
    const T* x = args.in<T>(0);
    T *y = args.out<T>(0), *mask = args.out<T>(1);
    const RandomCursor cursor = is_train ? *args.random : RandomCursor{};
    for_elements((count + 3) / 4, [=](int64_t begin, int64_t end) {
      for (int64_t block = begin; block < end; ++block) {
        const PhiloxBlock random =
            is_train ? philox(cursor.key, cursor.draw + slot, static_cast<uint64_t>(block)) : PhiloxBlock{};
        for (int64_t i = block * 4; i < std::min(count, block * 4 + 4); ++i) {
          // In inference, the mean of all slopes.
          mask[i] = static_cast<T>(low + width * (is_train ? static_cast<C>(unit_float(random.words[i % 4])) : C(0.5)));
          y[i] = static_cast<C>(x[i]) > C(0) ? x[i] : static_cast<T>(static_cast<C>(x[i]) * static_cast<C>(mask[i]));
        }
      }
    });
  });
}

// ---- All of them --------------------------------------------------------------------------------------------------

std::unique_ptr<Kernel> build_forward(const NodeView& node) {
  if (const auto loop = find_loop(node)) return build_map(node, *loop);
  if (node.as<LeakyReLU>().act_type == "prelu") return build_prelu(node);
  return visit_floating(node.outputs[0].dtype,
                        [&](auto type) { return build_rrelu<typename decltype(type)::type>(node); });
}

std::unique_ptr<Kernel> build_backward(const NodeView& node) {
  const auto loop = find_loop(node);
  return loop ? build_map(node, *loop) : build_prelu_grad(node);
}

}  // namespace

void add_leaky_relu(ImplementationTable& table) {
  add_loops(functions::LeakyTable{});
  add_loops(functions::LeakyGradTable{});
  add_plain<LeakyReLU>(table, build_forward);
  add_plain<LeakyReLUGrad>(table, build_backward);
}

}  // namespace symbind::cpu_backend
