#include "symbind/ops/batch_norm.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "symbind/backend/cpu/batch_norm_lanes.h"
#include "symbind/backend/cpu/channel_lanes.h"
#include "symbind/backend/cpu/loops.h"
#include "symbind/backend/cpu/plain.h"
#include "symbind/backend/cpu/row_implementations.h"
#include "symbind/passes/target.h"

namespace symbind::cpu_backend {
namespace {

struct Pair {
  double first, second;
};

// Adds up terms(channel)(element) over all elements of each channel in [begin, end). Sums are accumulated in double, in
// several lanes so that they vectorize.
template <class Terms>
void sum_channels(const BatchNormSize& size, int64_t begin, int64_t end, Pair* sums, Terms terms) {
  std::fill(sums, sums + (end - begin), Pair{0, 0});
  if (size.inner == 1) {
    for (int64_t outer = 0; outer < size.outer; ++outer)
      for (int64_t channel = begin; channel < end; ++channel) {
        const Pair value = terms(channel)(outer * size.channels + channel);
        sums[channel - begin].first += value.first;
        sums[channel - begin].second += value.second;
      }
    return;
  }
  constexpr int64_t lanes = 8;
  for (int64_t channel = begin; channel < end; ++channel) {
    const auto term = terms(channel);
    double first[lanes] = {}, second[lanes] = {};
    for (int64_t outer = 0; outer < size.outer; ++outer) {
      const int64_t start = (outer * size.channels + channel) * size.inner;
      int64_t i = 0;
      for (; i + lanes <= size.inner; i += lanes)
        for (int64_t lane = 0; lane < lanes; ++lane) {
          const Pair value = term(start + i + lane);
          first[lane] += value.first;
          second[lane] += value.second;
        }
      for (; i < size.inner; ++i) {
        const Pair value = term(start + i);
        first[0] += value.first;
        second[0] += value.second;
      }
    }
    for (int64_t lane = 0; lane < lanes; ++lane) {
      sums[channel - begin].first += first[lane];
      sums[channel - begin].second += second[lane];
    }
  }
}

// Calls visits(channel)(element) for all elements of the channels in [begin, end).
template <class Visits>
void each_element(const BatchNormSize& size, int64_t begin, int64_t end, Visits visits) {
  for (int64_t outer = 0; outer < size.outer; ++outer) {
    if (size.inner == 1) {
      for (int64_t channel = begin; channel < end; ++channel) visits(channel)(outer * size.channels + channel);
    } else {
      for (int64_t channel = begin; channel < end; ++channel) {
        const auto visit = visits(channel);
        const int64_t start = (outer * size.channels + channel) * size.inner;
        for (int64_t i = 0; i < size.inner; ++i) visit(start + i);
      }
    }
  }
}

// The parameters of half-precision data are float, those of other data have its own type: compute_type<T> both times.
template <class T, class P>
std::unique_ptr<Kernel> build_forward(const NodeView& node) {
  using C = compute_type<T>;
  constexpr bool relu = std::is_same_v<P, BatchNormRelu>;
  const auto p = node.as<P>();
  const BatchNormSize size = size_of(p, node.inputs[0].shape);
  const bool own = uses_batch_statistics(p, node.is_train);
  // MXNet's momentum is a float: this makes float64 statistics agree too.
  const float momentum = static_cast<float>(p.momentum), rest = 1 - momentum;
  return make_kernel(
      [=](const Args& args) {
        const T* x = args.in<T>(0);
        const C *gamma = args.in<C>(1), *beta = args.in<C>(2);
        C *moving_mean = args.state<C>(3), *moving_var = args.state<C>(4);
        T* y = args.out<T>(0);
        C *mean = args.out<C>(1), *deviation = args.out<C>(2);  // the reciprocal standard deviation
        for_elements(
            size.channels,
            [=](int64_t begin, int64_t end) {
              std::vector<Pair> sums(static_cast<size_t>(own ? end - begin : 0));
              if (own) {
                const double count = static_cast<double>(std::max<int64_t>(size.per_channel(), 1));
                sum_channels(size, begin, end, sums.data(), [=](int64_t) {
                  return [=](int64_t i) { return Pair{static_cast<double>(x[i]), 0}; };
                });
                for (int64_t c = begin; c < end; ++c)
                  mean[c] = static_cast<C>(sums[static_cast<size_t>(c - begin)].first / count);
                // Corrects the variance for the rounding of the mean.
                sum_channels(size, begin, end, sums.data(), [=](int64_t c) {
                  return [x, middle = static_cast<double>(mean[c])](int64_t i) {
                    const double away = static_cast<double>(x[i]) - middle;
                    return Pair{away * away, away};
                  };
                });
                for (int64_t c = begin; c < end; ++c) {
                  const Pair& sum = sums[static_cast<size_t>(c - begin)];
                  const double shift = sum.second / count, variance = std::max(sum.first / count - shift * shift, 0.0);
                  deviation[c] = static_cast<C>(1 / std::sqrt(variance + p.eps));
                  moving_mean[c] = static_cast<C>(moving_mean[c] * momentum + mean[c] * rest);
                  moving_var[c] = static_cast<C>(moving_var[c] * momentum + variance * rest);
                }
              } else {
                for (int64_t c = begin; c < end; ++c) {
                  mean[c] = moving_mean[c];
                  deviation[c] = static_cast<C>(1 / std::sqrt(moving_var[c] + p.eps));
                }
              }
              each_element(size, begin, end, [=, &p](int64_t c) {
                const C scale = p.fix_gamma ? deviation[c] : gamma[c] * deviation[c];
                return [x, y, scale, middle = mean[c], shift = beta[c]](int64_t i) {
                  const C value = (static_cast<C>(x[i]) - middle) * scale + shift;
                  y[i] = static_cast<T>(relu && value < C(0) ? C(0) : value);
                };
              });
            },
            twice_read_grain(size.per_channel()));
      },
      {.in_place = {{0, 0}}});
}

// With x̂ = (x - mean) / deviation: dbeta = Σ dy, dgamma = Σ dy·x̂, and
// dx = gamma / deviation · (dy - (dbeta + x̂·dgamma) / count), where the last term is the gradient through the batch's
// own statistics and is absent for given ones.
//
// After ReLU, dy counts only where the result, which is recomputed, was above zero.
template <class T, class P>
std::unique_ptr<Kernel> build_backward(const NodeView& node) {
  using C = compute_type<T>;
  constexpr bool relu = std::is_same_v<P, BatchNormReluGrad>;
  const auto p = node.as<P>();
  bool with_sum = false;
  if constexpr (relu) with_sum = p.with_sum;
  const BatchNormSize size = size_of(p, node.inputs[1].shape);
  const bool own = uses_batch_statistics(p, node.is_train);
  return make_kernel(
      [=](const Args& args) {
        const T *dy = args.in<T>(0), *x = args.in<T>(1);
        const C *gamma = args.in<C>(2), *beta = args.in<C>(relu ? 3 : 2);
        const C *mean = args.in<C>(relu ? 4 : 3), *deviation = args.in<C>(relu ? 5 : 4);
        const T* const more = with_sum ? args.in<T>(6) : nullptr;
        const auto scale_of = [=](int64_t c) { return p.fix_gamma ? deviation[c] : gamma[c] * deviation[c]; };
        // The gradient of the norm's result, before ReLU.
        const auto arriving = [=](int64_t i, C away, C scale, C shift) {
          return relu && !(away * scale + shift > C(0)) ? C(0) : static_cast<C>(dy[i]);
        };
        T* dx = args.out<T>(0);
        C *dgamma = args.out<C>(1), *dbeta = args.out<C>(2);
        for_elements(
            size.channels,
            [=](int64_t begin, int64_t end) {
              const double count = static_cast<double>(std::max<int64_t>(size.per_channel(), 1));
              std::vector<Pair> sums(static_cast<size_t>(end - begin));
              sum_channels(size, begin, end, sums.data(), [=](int64_t c) {
                return [=, middle = mean[c], scale = scale_of(c), shift = beta[c]](int64_t i) {
                  const C away = static_cast<C>(x[i]) - middle;
                  const auto g = static_cast<double>(arriving(i, away, scale, shift));
                  return Pair{g, g * (static_cast<double>(x[i]) - static_cast<double>(middle))};
                };
              });
              std::vector<C> through_mean(sums.size()), through_deviation(sums.size());
              for (int64_t c = begin; c < end; ++c) {
                const auto at = static_cast<size_t>(c - begin);
                const double own_dgamma = sums[at].second * deviation[c];
                dbeta[c] = static_cast<C>(sums[at].first);
                dgamma[c] = p.fix_gamma ? C(0) : static_cast<C>(own_dgamma);
                through_mean[at] = own ? static_cast<C>(sums[at].first / count) : C(0);
                through_deviation[at] = own ? static_cast<C>(own_dgamma * deviation[c] / count) : C(0);
              }
              const C *through_mean_data = through_mean.data(), *through_deviation_data = through_deviation.data();
              each_element(size, begin, end, [=](int64_t c) {
                return
                    [=, scale = scale_of(c), middle = mean[c], shift = beta[c], of_mean = through_mean_data[c - begin],
                     of_deviation = through_deviation_data[c - begin]](int64_t i) {
                      const C away = static_cast<C>(x[i]) - middle;
                      const C result = scale * (arriving(i, away, scale, shift) - of_mean - away * of_deviation);
                      dx[i] = static_cast<T>(more ? result + static_cast<C>(more[i]) : result);
                    };
              });
            },
            twice_read_grain(size.per_channel()));
      },
      {.in_place = {{0, 0}, {1, 0}}});
}

}  // namespace

void add_batch_norm(ImplementationTable& table) {
  add_batch_norm_lanes(table);
  add_batch_norm_rows(table);
  const auto forward = [&]<class P>(std::type_identity<P>) {
    add_plain<P>(table, [](const NodeView& node) {
      return visit_floating(node.inputs[0].dtype,
                            [&](auto type) { return build_forward<typename decltype(type)::type, P>(node); });
    });
  };
  const auto backward = [&]<class P>(std::type_identity<P>) {
    add_plain<P>(table, [](const NodeView& node) {
      return visit_floating(node.inputs[0].dtype,
                            [&](auto type) { return build_backward<typename decltype(type)::type, P>(node); });
    });
  };
  forward(std::type_identity<BatchNorm>{});
  forward(std::type_identity<BatchNormRelu>{});
  backward(std::type_identity<BatchNormGrad>{});
  backward(std::type_identity<BatchNormReluGrad>{});
}

}  // namespace symbind::cpu_backend
