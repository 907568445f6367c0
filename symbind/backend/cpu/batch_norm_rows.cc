// BatchNorm of plain arrays whose channels are not adjacent, alone and with ReLU: a thread runs all passes over each of
// its channels, so that later passes find the data in the cache.
#include <algorithm>
#include <cmath>

#include "symbind/backend/cpu/channel_lanes.h"
#include "symbind/backend/cpu/loops.h"
#include "symbind/backend/cpu/row_implementations.h"
#include "symbind/backend/cpu/row_kernels.h"
#include "symbind/core/error.h"
#include "symbind/ops/batch_norm.h"
#include "symbind/passes/target.h"

namespace symbind::cpu_backend {
namespace {

Channel channel_of(const BatchNormSize& size) { return {size.outer, size.inner, size.channels * size.inner}; }

// The scales of a channel. The parameters are float32 for data of any type.
struct Scales {
  const float *mean, *deviation, *gamma, *beta;  // gamma: null when it is taken as one
  bool relu;
  ChannelScale of(int64_t c) const {
    return {mean[c], gamma ? gamma[c] * deviation[c] : deviation[c], beta ? beta[c] : 0, relu};
  }
};

// With the batch's own statistics.
template <class T>
std::unique_ptr<Kernel> build_training(const BatchNormSize& size, const BatchNorm& p, bool relu) {
  // MXNet's momentum is a float.
  const float momentum = static_cast<float>(p.momentum), rest = 1 - momentum;
  return make_kernel(
      [=, eps = p.eps, fix_gamma = p.fix_gamma, kernels = row_kernels<T>()->channel](const Args& args) {
        const T* const x = args.in<T>(0);
        float *const moving_mean = args.state<float>(3), *const moving_var = args.state<float>(4);
        T* const y = args.out<T>(0);
        float *const mean = args.out<float>(1), *const deviation = args.out<float>(2);  // the reciprocal of it
        const Scales scales{mean, deviation, fix_gamma ? nullptr : args.in<float>(1), args.in<float>(2), relu};
        parallel_for(size.channels, twice_read_grain(size.per_channel()), [=](int64_t begin, int64_t end) {
          for (int64_t c = begin; c < end; ++c) {
            const int64_t first = c * size.inner;
            const ChannelStatistics own = kernels.measure(channel_of(size), x + first);
            mean[c] = static_cast<float>(own.mean);
            deviation[c] = static_cast<float>(1 / std::sqrt(own.variance + eps));
            moving_mean[c] = moving_mean[c] * momentum + mean[c] * rest;
            moving_var[c] = moving_var[c] * momentum + static_cast<float>(own.variance) * rest;
            kernels.normalise(channel_of(size), scales.of(c), x + first, y + first);
          }
        });
      },
      {.in_place = {{0, 0}}});
}

// With given statistics there is one pass, in memory order.
template <class T>
std::unique_ptr<Kernel> build_inference(const BatchNormSize& size, const BatchNorm& p, bool relu) {
  return make_kernel(
      [=, eps = p.eps, fix_gamma = p.fix_gamma, kernels = row_kernels<T>()->channel](const Args& args) {
        const T* const x = args.in<T>(0);
        const float *const moving_mean = args.in<float>(3), *const moving_var = args.in<float>(4);
        T* const y = args.out<T>(0);
        float *const mean = args.out<float>(1), *const deviation = args.out<float>(2);
        for (int64_t c = 0; c < size.channels; ++c) {
          mean[c] = moving_mean[c];
          deviation[c] = static_cast<float>(1 / std::sqrt(static_cast<double>(moving_var[c]) + eps));
        }
        const Scales scales{mean, deviation, fix_gamma ? nullptr : args.in<float>(1), args.in<float>(2), relu};
        const Channel plane{1, size.inner, size.inner};
        parallel_for(size.outer * size.channels, element_grain / size.inner + 1, [=](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i)
            kernels.normalise(plane, scales.of(i % size.channels), x + i * size.inner, y + i * size.inner);
        });
      },
      {.in_place = {{0, 0}}});
}

template <class T>
std::unique_ptr<Kernel> build_forward(const NodeView& node, const BatchNorm& p, bool relu) {
  const BatchNormSize size = size_of(p, node.inputs[0].shape);
  return uses_batch_statistics(p, node.is_train) ? build_training<T>(size, p, relu) : build_inference<T>(size, p, relu);
}

// The input indices of the two gradients.
struct GradientInputs {
  int beta, mean, deviation, sum;  // -1: there is none
};

// With x' = (x - mean) / deviation: dbeta = Σ dy, dgamma = Σ dy·x', and
// dx = gamma / deviation · (dy - (dbeta + x'·dgamma) / count), where the last term is the gradient through the batch's
// own statistics and is absent for given ones.
template <class T>
std::unique_ptr<Kernel> build_backward(const NodeView& node, const BatchNorm& p, const GradientInputs& at) {
  const BatchNormSize size = size_of(p, node.inputs[1].shape);
  const bool own = uses_batch_statistics(p, node.is_train), relu = at.beta >= 0;
  const auto count = static_cast<double>(std::max<int64_t>(size.per_channel(), 1));
  KernelTraits traits{.in_place = {{0, 0}, {1, 0}}};
  if (at.sum >= 0) traits.in_place.emplace_back(at.sum, 0);
  return make_kernel(
      [=, fix_gamma = p.fix_gamma, kernels = row_kernels<T>()->channel](const Args& args) {
        const auto floats = [&](int index) { return args.in<float>(static_cast<size_t>(index)); };
        const T *const dy = args.in<T>(0), *const x = args.in<T>(1);
        const T* const more = at.sum < 0 ? nullptr : args.in<T>(static_cast<size_t>(at.sum));
        const float* const deviation = floats(at.deviation);
        const Scales scales{floats(at.mean), deviation, fix_gamma ? nullptr : floats(2),
                            at.beta < 0 ? nullptr : floats(at.beta), relu};
        T* const dx = args.out<T>(0);
        float *const dgamma = args.out<float>(1), *const dbeta = args.out<float>(2);
        parallel_for(size.channels, twice_read_grain(size.per_channel()), [=](int64_t begin, int64_t end) {
          for (int64_t c = begin; c < end; ++c) {
            const int64_t first = c * size.inner;
            const auto narrow = static_cast<double>(deviation[c]);
            const ChannelScale scaled = scales.of(c);
            const NormSums sums = kernels.sum(channel_of(size), scaled, dy + first, x + first);
            const double own_dgamma = sums.gamma * narrow;
            dbeta[c] = static_cast<float>(sums.beta);
            dgamma[c] = fix_gamma ? 0.0f : static_cast<float>(own_dgamma);
            const ChannelSlope slope{own ? static_cast<float>(sums.beta / count) : 0,
                                     own ? static_cast<float>(own_dgamma * narrow / count) : 0};
            kernels.spread(channel_of(size), scaled, slope, dy + first, x + first, more ? more + first : nullptr,
                           dx + first);
          }
        });
      },
      traits);
}

// ---- The four operators ---------------------------------------------------------------------------------------------

template <class P>
std::unique_ptr<Kernel> build(const NodeView& node) {
  const P& p = node.as<P>();
  return visit_row_type(node.outputs[0].dtype, [&]<class T>(std::type_identity<T>) {
    if constexpr (std::is_same_v<P, BatchNormGrad>)
      return build_backward<T>(node, p, {-1, 3, 4, -1});
    else if constexpr (std::is_same_v<P, BatchNormReluGrad>)
      return build_backward<T>(node, p, {3, 4, 5, p.with_sum ? 6 : -1});
    else
      return build_forward<T>(node, p, std::is_same_v<P, BatchNormRelu>);
  });
}

template <class P>
std::string refuse(const NodeView& node) {
  const Tensor& output = node.outputs[0];
  if (!has_row_kernels(output.dtype)) return join("element type ", output.dtype, ", or the processor has no vectors");
  if (output.shape.size() == 0) return "an array is empty";
  return size_of(node.as<P>(), output.shape).inner == 1 ? "channels side by side" : "";
}

// In float32 the implementation for blocked layouts has priority; it calls build_batch_norm_rows().
template <class P>
void add(ImplementationTable& table) {
  const auto refuse_float = [](const NodeView& node) {
    return node.outputs[0].dtype == DType::float32 ? "only for half precision" : refuse<P>(node);
  };
  add_rows<P>(table, refuse_float, build<P>);
}

}  // namespace

template <class P>
std::unique_ptr<Kernel> build_batch_norm_rows(const NodeView& node) {
  return refuse<P>(node).empty() ? build<P>(node) : nullptr;
}
template std::unique_ptr<Kernel> build_batch_norm_rows<BatchNorm>(const NodeView&);
template std::unique_ptr<Kernel> build_batch_norm_rows<BatchNormRelu>(const NodeView&);
template std::unique_ptr<Kernel> build_batch_norm_rows<BatchNormGrad>(const NodeView&);
template std::unique_ptr<Kernel> build_batch_norm_rows<BatchNormReluGrad>(const NodeView&);

void add_batch_norm_rows(ImplementationTable& table) {
  add<BatchNorm>(table);
  add<BatchNormRelu>(table);
  add<BatchNormGrad>(table);
  add<BatchNormReluGrad>(table);
}

}  // namespace symbind::cpu_backend
