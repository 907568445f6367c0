#include "symbind/ops/sparse_reg.h"

#include <algorithm>
#include <cstring>

#include "symbind/backend/cpu/loops.h"
#include "symbind/backend/cpu/plain.h"
#include "symbind/core/axis_view.h"
#include "symbind/passes/target.h"

namespace symbind::cpu_backend {
namespace {

template <class T>
double mean_of(const T* x, const AxisView& channels, int64_t channel) {
  double sum = 0;
  for (int64_t outer = 0; outer < channels.outer; ++outer) {
    const int64_t first = (outer * channels.length + channel) * channels.inner;
    for (int64_t i = first; i < first + channels.inner; ++i) sum += static_cast<double>(x[i]);
  }
  return sum / static_cast<double>(std::max<int64_t>(1, channels.row_count()));
}

std::unique_ptr<Kernel> build_forward(const NodeView& node) {
  const AxisView channels = view_along(node.inputs[0].shape, 1);
  const bool moves = node.is_train && channels.size() > 0;
  // MXNet's momentum is a float.
  const double momentum = static_cast<double>(static_cast<float>(node.as<IdentityAttachKLSparseReg>().momentum));
  return visit_floating(node.inputs[0].dtype, [&](auto type) -> std::unique_ptr<Kernel> {
    using T = typename decltype(type)::type;
    using C = compute_type<T>;
    return make_kernel(
        [=](const Args& args) {
          const T* const x = args.in<T>(0);
          C *const average = args.state<C>(1), *const kept = args.out<C>(1);
          const int64_t grain = element_grain / std::max<int64_t>(1, channels.row_count()) + 1;
          parallel_for(channels.length, grain, [=](int64_t begin, int64_t end) {
            for (int64_t channel = begin; channel < end; ++channel) {
              if (moves)
                average[channel] = static_cast<C>(momentum * static_cast<double>(average[channel]) +
                                                  (1 - momentum) * mean_of(x, channels, channel));
              if (kept) kept[channel] = average[channel];
            }
          });
          const auto bytes = static_cast<size_t>(channels.size()) * sizeof(T);
          if (bytes > 0 && args.out<T>(0) != x) std::memcpy(args.out<T>(0), x, bytes);
        },
        {.in_place = {{0, 0}}});
  });
}

// dy + penalty · (-target / average + (1 - target) / (1 - average))
std::unique_ptr<Kernel> build_backward(const NodeView& node) {
  const auto& p = node.as<IdentityAttachKLSparseRegGrad>();
  const AxisView channels = view_along(node.inputs[0].shape, 1);
  return visit_floating(node.inputs[0].dtype, [&](auto type) -> std::unique_ptr<Kernel> {
    using T = typename decltype(type)::type;
    using C = compute_type<T>;
    return make_kernel(
        [=, target = p.sparseness_target, penalty = p.penalty](const Args& args) {
          const T* const dy = args.in<T>(0);
          const C* const averages = args.in<C>(1);
          T* const dx = args.out<T>();
          const int64_t grain = element_grain / std::max<int64_t>(1, channels.inner) + 1;
          parallel_for(channels.outer * channels.length, grain, [=](int64_t begin, int64_t end) {
            for (int64_t row = begin; row < end; ++row) {
              const auto average = static_cast<double>(averages[row % channels.length]);
              const C more = static_cast<C>(penalty * ((1 - target) / (1 - average) - target / average));
              for (int64_t i = row * channels.inner; i < (row + 1) * channels.inner; ++i)
                dx[i] = static_cast<T>(static_cast<C>(dy[i]) + more);
            }
          });
        },
        {.in_place = {{0, 0}}});
  });
}

}  // namespace

void add_sparse_reg(ImplementationTable& table) {
  add_plain<IdentityAttachKLSparseReg>(table, build_forward);
  add_plain<IdentityAttachKLSparseRegGrad>(table, build_backward);
}

}  // namespace symbind::cpu_backend
