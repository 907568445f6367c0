// All but LRN work on rows: `length` numbers `step` apart. Sums are accumulated in double.
#include "symbind/ops/normalize.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "symbind/backend/cpu/lane_sums.h"
#include "symbind/backend/cpu/loops.h"
#include "symbind/backend/cpu/plain.h"
#include "symbind/backend/cpu/row_implementations.h"
#include "symbind/backend/cpu/rows.h"
#include "symbind/backend/cpu/widened.h"
#include "symbind/backend/vector_math.h"
#include "symbind/passes/target.h"

namespace symbind::cpu_backend {
namespace {

constexpr int64_t work = 4;  // of a number

// ---- L2Normalization ------------------------------------------------------------------------------------------------

template <class C>
double length_of(const C* x, int64_t count, double eps) {
  return std::sqrt(eps + sum_in_lanes(count, [=](int64_t i) {
                     const auto value = static_cast<double>(x[i]);
                     return value * value;
                   }));
}

std::unique_ptr<Kernel> build_l2(const NodeView& node) {
  const auto& p = node.as<L2Normalization>();
  return widened_kernel(node, [rows = rows_of(p, node.inputs[0].shape), eps = p.eps](auto type) {
    using C = typename decltype(type)::type;
    return [=](const C* const* in, C* const* out) {
      const C* const x = in[0];
      C* const y = out[0];
      if (rows.inner == 1) {
        rows.for_each(work, [=](int64_t, int64_t at) {
          const C scale = static_cast<C>(1 / length_of(x + at, rows.length, eps));
          for (int64_t i = at; i < at + rows.length; ++i) y[i] = x[i] * scale;
        });
        return;
      }
      rows.for_each_block(work, [=](int64_t at, int64_t count) {
        double squares[rows_together];
        for (int64_t j = 0; j < count; ++j) squares[j] = eps;
        for (int64_t k = 0; k < rows.length; ++k)
          for (int64_t j = 0; j < count; ++j) {
            const auto value = static_cast<double>(x[at + k * rows.inner + j]);
            squares[j] += value * value;
          }
        C scales[rows_together];
        for (int64_t j = 0; j < count; ++j) scales[j] = static_cast<C>(1 / std::sqrt(squares[j]));
        for (int64_t k = 0; k < rows.length; ++k)
          for (int64_t j = 0; j < count; ++j) y[at + k * rows.inner + j] = x[at + k * rows.inner + j] * scales[j];
      });
    };
  });
}

// dy / length - x · sum(dy·x) / length³
std::unique_ptr<Kernel> build_l2_grad(const NodeView& node) {
  const auto& p = node.as<L2NormalizationGrad>();
  return widened_kernel(node, [rows = rows_of(p, node.inputs[1].shape), eps = p.eps](auto type) {
    using C = typename decltype(type)::type;
    return [=](const C* const* in, C* const* out) {
      const C *const dy = in[0], *const x = in[1];
      C* const dx = out[0];
      if (rows.inner == 1) {
        rows.for_each(work, [=](int64_t, int64_t at) {
          const double scale = 1 / length_of(x + at, rows.length, eps);
          const double sum = sum_in_lanes(
              rows.length, [=](int64_t i) { return static_cast<double>(dy[at + i]) * static_cast<double>(x[at + i]); });
          const C own = static_cast<C>(scale), other = static_cast<C>(sum * scale * scale * scale);
          for (int64_t i = at; i < at + rows.length; ++i) dx[i] = dy[i] * own - x[i] * other;
        });
        return;
      }
      rows.for_each_block(work, [=](int64_t at, int64_t count) {
        double squares[rows_together], sums[rows_together];
        for (int64_t j = 0; j < count; ++j) squares[j] = eps, sums[j] = 0;
        for (int64_t k = 0; k < rows.length; ++k)
          for (int64_t j = 0; j < count; ++j) {
            const int64_t i = at + k * rows.inner + j;
            const auto value = static_cast<double>(x[i]);
            squares[j] += value * value;
            sums[j] += static_cast<double>(dy[i]) * value;
          }
        C own[rows_together], other[rows_together];
        for (int64_t j = 0; j < count; ++j) {
          const double scale = 1 / std::sqrt(squares[j]);
          own[j] = static_cast<C>(scale);
          other[j] = static_cast<C>(sums[j] * scale * scale * scale);
        }
        for (int64_t k = 0; k < rows.length; ++k)
          for (int64_t j = 0; j < count; ++j) {
            const int64_t i = at + k * rows.inner + j;
            dx[i] = dy[i] * own[j] - x[i] * other[j];
          }
      });
    };
  });
}

// ---- LRN ------------------------------------------------------------------------------------------------------------

// Sums over the channels around each one, at every position of every image: body(begin, count, sums) gets those of the
// elements [begin, begin + count), which are of one channel. There are few terms.
template <class C, class Term, class Body>
void for_windows(const Shape& shape, int64_t nsize, const Term& term, const Body& body) {
  constexpr int64_t together = 64;  // sums that stay in registers while terms are added: their number is a constant
  const int64_t channels = shape[1], space = shape[2] * shape[3], reach = (nsize - 1) / 2;
  for_elements(
      shape[0] * channels,
      [&](int64_t begin, int64_t end) {
        for (int64_t plane = begin; plane < end; ++plane) {
          const int64_t channel = plane % channels, image = plane - channel;
          const int64_t first = image + std::max<int64_t>(0, channel - reach);
          const int64_t last = image + std::min(channels - 1, channel + reach);
          const auto run = [&](int64_t at, auto count) {
            C sums[together];
            for (int64_t j = 0; j < count; ++j) sums[j] = 0;
            for (int64_t other = first; other <= last; ++other)
              for (int64_t j = 0; j < count; ++j) sums[j] += term(other * space + at + j);
            body(plane * space + at, count, sums);
          };
          int64_t at = 0;
          for (; at + together <= space; at += together) run(at, std::integral_constant<int64_t, together>{});
          if (at < space) run(at, space - at);
        }
      },
      element_grain / 8 / std::max<int64_t>(1, space) + 1);
}

// use(power), where power(norm) is norm^-beta of a positive number. The usual beta needs only square roots.
template <class C, class Use>
void with_power(double beta, const Use& use) {
  if (beta == 0.75)
    use([](C norm) {
      const C root = std::sqrt(norm);
      return 1 / (root * std::sqrt(root));
    });
  else
    use([exponent = static_cast<C>(-beta)](C norm) { return vector_math::exp(exponent * vector_math::log(norm)); });
}

// body(i, norm), where the norm is knorm + alpha/nsize · sum of squares.
template <class C, class Body>
void for_norms(const LRN& p, const Shape& shape, const C* x, const Body& body) {
  const auto factor = static_cast<C>(p.alpha / static_cast<double>(p.nsize)), knorm = static_cast<C>(p.knorm);
  for_windows<C>(
      shape, p.nsize, [=](int64_t i) { return x[i] * x[i]; },
      [=](int64_t begin, int64_t count, const C* squares) {
#pragma GCC ivdep
        for (int64_t j = 0; j < count; ++j) body(begin + j, knorm + factor * squares[j]);
      });
}

std::unique_ptr<Kernel> build_lrn(const NodeView& node) {
  return widened_kernel(node, [p = node.as<LRN>(), shape = node.inputs[0].shape](auto type) {
    using C = typename decltype(type)::type;
    return [=](const C* const* in, C* const* out) {
      with_power<C>(p.beta, [&, x = in[0], y = out[0]](const auto& power) {
        for_norms(p, shape, x, [=](int64_t i, C norm) { y[i] = x[i] * power(norm); });
      });
    };
  });
}

// dy·norm^-beta - 2·alpha·beta/nsize · x · sum over neighbours of dy·x·norm^(-beta-1)
std::unique_ptr<Kernel> build_lrn_grad(const NodeView& node) {
  const Shape& shape = node.inputs[1].shape;
  return widened_kernel(
      node,
      [p = node.as<LRNGrad>(), shape](auto type) {
        using C = typename decltype(type)::type;
        return [=](const C* const* in, C* const* out) {
          const C *dy = in[0], *x = in[1];
          C *dx = out[0], *parts = out[1];
          with_power<C>(p.beta, [&](const auto& power) {
            for_norms(p, shape, x, [=](int64_t i, C norm) {
              const C scale = power(norm);
              parts[i] = dy[i] * x[i] * scale / norm;
              dx[i] = dy[i] * scale;
            });
          });
          const auto factor = static_cast<C>(2 * p.alpha * p.beta / static_cast<double>(p.nsize));
          for_windows<C>(
              shape, p.nsize, [=](int64_t i) { return parts[i]; },
              [=](int64_t begin, int64_t count, const C* sums) {
#pragma GCC ivdep
                for (int64_t j = 0; j < count; ++j) dx[begin + j] -= factor * x[begin + j] * sums[j];
              });
        };
      },
      shape.size() + 1);
}

// ---- InstanceNorm, LayerNorm and GroupNorm --------------------------------------------------------------------------

struct Statistics {
  double mean, deviation;
};
template <class C>
[[gnu::always_inline]] inline Statistics statistics_of(const C* x, const Rows& rows, double eps) {
  const double count = static_cast<double>(std::max<int64_t>(1, rows.length));
  const auto sum_of = [&](const auto& term) [[gnu::always_inline]] {
    return rows.inner == 1 ? sum_in_lanes(rows.length, [&](int64_t k) { return term(x[k]); })
                           : sum_in_lanes(rows.length, [&](int64_t k) { return term(x[k * rows.inner]); });
  };
  const double mean = sum_of([](C value) { return static_cast<double>(value); }) / count;
  const double squares = sum_of([=](C value) {
    const double away = static_cast<double>(value) - mean;
    return away * away;
  });
  return {mean, std::sqrt(squares / count + eps)};
}

// Rows and, for each number, its scale: in LayerNorm scales vary along a row, in the others they do not.
struct Scaled {
  Rows rows;
  std::optional<int64_t> channels;  // or groups of them; none: LayerNorm
  double eps;
  bool shows_statistics;
  int64_t scale_of(int64_t row, int64_t k) const { return channels ? row % *channels : k; }
  int64_t scales() const { return channels.value_or(rows.length); }
};

// Calls body(k, index) for the numbers of a row.
template <class Body>
[[gnu::always_inline]] inline void each_in(const Rows& rows, int64_t at, const Body& body) {
  if (rows.inner == 1)
    for (int64_t k = 0; k < rows.length; ++k) body(k, at + k);
  else
    for (int64_t k = 0; k < rows.length; ++k) body(k, at + k * rows.inner);
}

std::unique_ptr<Kernel> build_scaled(const NodeView& node, const Scaled& scaled) {
  return widened_kernel(node, [scaled](auto type) {
    using C = typename decltype(type)::type;
    return [scaled](const C* const* in, C* const* out) {
      const Rows rows = scaled.rows;
      rows.for_each(work, [=, x = in[0], gamma = in[1], beta = in[2], y = out[0]](int64_t row, int64_t at) {
        const Statistics statistics = statistics_of(x + at, rows, scaled.eps);
        const C mean = static_cast<C>(statistics.mean), scale = static_cast<C>(1 / statistics.deviation);
        if (!scaled.channels) {
          each_in(rows, at, [=](int64_t k, int64_t i) { y[i] = (x[i] - mean) * scale * gamma[k] + beta[k]; });
        } else {
          const C own = gamma[row % *scaled.channels] * scale, shift = beta[row % *scaled.channels];
          each_in(rows, at, [=](int64_t, int64_t i) { y[i] = (x[i] - mean) * own + shift; });
        }
        if (!scaled.shows_statistics) return;
        out[1][row] = static_cast<C>(statistics.mean);
        out[2][row] = static_cast<C>(statistics.deviation);
      });
    };
  });
}

// What a row stores for the gradients of the scales: its statistics, and the sums of dy and of dy·x' over it.
struct RowSums {
  Statistics statistics;
  double grads, products;
};

// LayerNorm's gamma and beta: sums over the rows in order, a few columns at a time.
template <class C>
void sum_columns(const Rows& rows, const C* dy, const C* x, const RowSums* sums, C* gamma_grad, C* beta_grad) {
  const int64_t blocks = (rows.length + rows_together - 1) / rows_together;
  for_elements(
      blocks,
      [=](int64_t begin, int64_t end) {
        for (int64_t block = begin; block < end; ++block) {
          const int64_t first = block * rows_together, count = std::min(rows_together, rows.length - first);
          double by_gamma[rows_together] = {}, by_beta[rows_together] = {};
          for (int64_t row = 0; row < rows.row_count(); ++row) {
            const int64_t at = rows.row_start(row) + first * rows.inner;
            const double mean = sums[row].statistics.mean, scale = 1 / sums[row].statistics.deviation;
            const auto add = [&](int64_t j, int64_t i) {
              by_beta[j] += static_cast<double>(dy[i]);
              by_gamma[j] += static_cast<double>(dy[i]) * ((static_cast<double>(x[i]) - mean) * scale);
            };
            if (rows.inner == 1)
              for (int64_t j = 0; j < count; ++j) add(j, at + j);
            else
              for (int64_t j = 0; j < count; ++j) add(j, at + j * rows.inner);
          }
          for (int64_t j = 0; j < count; ++j) {
            gamma_grad[first + j] = static_cast<C>(by_gamma[j]);
            beta_grad[first + j] = static_cast<C>(by_beta[j]);
          }
        }
      },
      element_grain / 4 / std::max<int64_t>(1, rows.row_count() * rows_together) + 1);
}

// With x' the normalized data and g = dy·gamma: dx = (g - mean(g) - x'·mean(g·x')) / deviation. gamma's gradient is the
// sum of dy·x', beta's that of dy; both are summed over the rows in order, from what each row stores in scratch.
std::unique_ptr<Kernel> build_scaled_grad(const NodeView& node, const Scaled& scaled) {
  const int64_t count = scaled.rows.row_count();
  return widened_kernel(
      node,
      [=](auto type) {
        using C = typename decltype(type)::type;
        return [=](const C* const* in, C* const* out) {
          const Rows rows = scaled.rows;
          const C *dy = in[0], *x = in[1], *gamma = in[2];
          C* const dx = out[0];
          auto* const left = reinterpret_cast<RowSums*>(out[3]);
          rows.for_each(work, [=](int64_t row, int64_t at) {
            const Statistics s = statistics_of(x + at, rows, scaled.eps);
            const double scale = 1 / s.deviation, each = 1 / static_cast<double>(std::max<int64_t>(1, rows.length));
            const bool by_column = !scaled.channels;
            const C own = by_column ? C(1) : gamma[row % *scaled.channels];
            const auto sum_of = [&](const auto& term) [[gnu::always_inline]] {
              return rows.inner == 1
                         ? sum_in_lanes(rows.length, [&](int64_t k) { return term(k, at + k); })
                         : sum_in_lanes(rows.length, [&](int64_t k) { return term(k, at + k * rows.inner); });
            };
            const auto normal = [=](int64_t i) { return (static_cast<double>(x[i]) - s.mean) * scale; };
            double grads, products;
            if (by_column) {
              grads = sum_of([=](int64_t k, int64_t i) { return dy[i] * gamma[k]; });
              products =
                  sum_of([=](int64_t k, int64_t i) { return static_cast<double>(dy[i] * gamma[k]) * normal(i); });
            } else {
              grads = sum_of([=](int64_t, int64_t i) { return dy[i]; });
              products = sum_of([=](int64_t, int64_t i) { return static_cast<double>(dy[i]) * normal(i); });
            }
            left[row] = {s, grads, products};
            const C mean = static_cast<C>(s.mean), narrow = static_cast<C>(scale);
            const C less = static_cast<C>(grads * each) * own, slope = static_cast<C>(products * each) * own;
            if (by_column)
              each_in(rows, at, [=](int64_t k, int64_t i) {
                dx[i] = (dy[i] * gamma[k] - less - (x[i] - mean) * narrow * slope) * narrow;
              });
            else
              each_in(rows, at, [=](int64_t, int64_t i) {
                dx[i] = (dy[i] * own - less - (x[i] - mean) * narrow * slope) * narrow;
              });
          });
          if (!scaled.channels) return sum_columns(rows, dy, x, left, out[1], out[2]);
          for (int64_t own = 0; own < *scaled.channels; ++own) {
            double by_gamma = 0, by_beta = 0;
            for (int64_t row = own; row < count; row += *scaled.channels) {
              by_gamma += left[row].products;
              by_beta += left[row].grads;
            }
            out[1][own] = static_cast<C>(by_gamma);
            out[2][own] = static_cast<C>(by_beta);
          }
        };
      },
      8 * count + 2);  // four doubles per row, for any C
}

Scaled instances(const Shape& data, double eps) {
  return {{data[0] * data[1], data.size(2, data.rank()), 1}, data[1], eps, false};
}
template <class P>
Scaled layers(const NodeView& node, const Shape& data) {
  const P& p = node.as<P>();
  return {rows_along(data, data.axis(p.axis, node.where())), std::nullopt, p.eps, true};
}
Scaled groups(const GroupNorm& p, const Shape& data) {
  return {{data[0] * p.num_groups, data.size(1, data.rank()) / p.num_groups, 1}, p.num_groups, p.eps, true};
}

}  // namespace

void add_normalize(ImplementationTable& table) {
  add_l2_rows(table);
  add_norm_rows(table);
  add_plain<L2Normalization>(table, build_l2);
  add_plain<L2NormalizationGrad>(table, build_l2_grad);
  add_plain<LRN>(table, build_lrn);
  add_plain<LRNGrad>(table, build_lrn_grad);
  add_plain<InstanceNorm>(table, [](const NodeView& node) {
    return build_scaled(node, instances(node.inputs[0].shape, node.as<InstanceNorm>().eps));
  });
  add_plain<InstanceNormGrad>(table, [](const NodeView& node) {
    return build_scaled_grad(node, instances(node.inputs[1].shape, node.as<InstanceNormGrad>().eps));
  });
  add_plain<LayerNorm>(
      table, [](const NodeView& node) { return build_scaled(node, layers<LayerNorm>(node, node.inputs[0].shape)); });
  add_plain<LayerNormGrad>(table, [](const NodeView& node) {
    return build_scaled_grad(node, layers<LayerNormGrad>(node, node.inputs[1].shape));
  });
  add_plain<GroupNorm>(table, [](const NodeView& node) {
    return build_scaled(node, groups(node.as<GroupNorm>(), node.inputs[0].shape));
  });
  add_plain<GroupNormGrad>(table, [](const NodeView& node) {
    return build_scaled_grad(node, groups(node.as<GroupNormGrad>(), node.inputs[1].shape));
  });
}

}  // namespace symbind::cpu_backend
