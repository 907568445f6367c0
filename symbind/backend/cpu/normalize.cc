// All but LRN work on rows: `length` numbers `step` apart. Sums are kept in double.
#include "symbind/ops/normalize.h"

#include <algorithm>
#include <cmath>

#include "symbind/backend/cpu/families.h"
#include "symbind/backend/cpu/loops.h"
#include "symbind/backend/cpu/plain.h"
#include "symbind/backend/cpu/widened.h"

namespace symbind::cpu_backend {
namespace {

struct Rows {
  int64_t outer, length, step;
  int64_t count() const { return outer * step; }
  int64_t start(int64_t row) const { return row / step * length * step + row % step; }

  template <class Body>
  void for_each(const Body& body) const {
    for_elements(
        count(),
        [&](int64_t begin, int64_t end) {
          for (int64_t row = begin; row < end; ++row) body(row, start(row));
        },
        element_grain / 4 / std::max<int64_t>(1, length) + 1);
  }
};

Rows along(const Shape& shape, int axis) {
  return {shape.size(0, axis), shape[axis], shape.size(axis + 1, shape.rank())};
}

// ---- L2Normalization ------------------------------------------------------------------------------------------------

Rows rows_of(const L2Normalization& p, const Shape& shape) {
  if (p.mode == "channel") return along(shape, 1);
  const int split = p.mode == "instance" ? 1 : 2;
  return {shape.size(0, split), shape.size(split, shape.rank()), 1};
}

template <class C>
double length_of(const C* x, const Rows& rows, double eps) {
  double squares = eps;
  for (int64_t k = 0; k < rows.length; ++k) {
    const auto value = static_cast<double>(x[k * rows.step]);
    squares += value * value;
  }
  return std::sqrt(squares);
}

std::unique_ptr<Kernel> build_l2(const NodeView& node) {
  const auto& p = node.as<L2Normalization>();
  return widened_kernel(node, [rows = rows_of(p, node.inputs[0].shape), eps = p.eps](auto type) {
    using C = typename decltype(type)::type;
    return [=](const C* const* in, C* const* out) {
      rows.for_each([=, x = in[0], y = out[0]](int64_t, int64_t at) {
        const C scale = static_cast<C>(1 / length_of(x + at, rows, eps));
        for (int64_t k = 0; k < rows.length; ++k) y[at + k * rows.step] = x[at + k * rows.step] * scale;
      });
    };
  });
}

// (dy - y·sum(dy·y)) / length
std::unique_ptr<Kernel> build_l2_grad(const NodeView& node) {
  const auto& p = node.as<L2NormalizationGrad>();
  return widened_kernel(node, [rows = rows_of(p, node.inputs[1].shape), eps = p.eps](auto type) {
    using C = typename decltype(type)::type;
    return [=](const C* const* in, C* const* out) {
      rows.for_each([=, dy = in[0], x = in[1], dx = out[0]](int64_t, int64_t at) {
        const double scale = 1 / length_of(x + at, rows, eps);
        double sum = 0;
        for (int64_t k = 0, i = at; k < rows.length; ++k, i += rows.step)
          sum += static_cast<double>(dy[i]) * static_cast<double>(x[i]);
        for (int64_t k = 0, i = at; k < rows.length; ++k, i += rows.step)
          dx[i] =
              static_cast<C>(scale * (static_cast<double>(dy[i]) - static_cast<double>(x[i]) * sum * scale * scale));
      });
    };
  });
}

// ---- LRN ------------------------------------------------------------------------------------------------------------

// The channels around each one, at every position of every image.
template <class C, class Body>
void for_windows(const Shape& shape, int64_t nsize, const Body& body) {
  const int64_t channels = shape[1], space = shape[2] * shape[3], reach = nsize / 2;
  for_elements(
      shape[0] * channels,
      [&](int64_t begin, int64_t end) {
        for (int64_t plane = begin; plane < end; ++plane) {
          const int64_t channel = plane % channels, image = plane - channel;
          const int64_t first = image + std::max<int64_t>(0, channel - reach);
          const int64_t last = image + std::min(channels - 1, channel + reach);
          for (int64_t i = 0; i < space; ++i) body(plane * space + i, first * space + i, last * space + i, space);
        }
      },
      element_grain / 8 / std::max<int64_t>(1, space) + 1);
}

// knorm + alpha/nsize · sum of squares, into `norms`.
template <class C>
void write_norms(const LRN& p, const Shape& shape, const C* x, C* norms) {
  for_windows<C>(shape, p.nsize, [=](int64_t at, int64_t first, int64_t last, int64_t step) {
    double squares = 0;
    for (int64_t i = first; i <= last; i += step) squares += static_cast<double>(x[i]) * static_cast<double>(x[i]);
    norms[at] = static_cast<C>(p.knorm + p.alpha / static_cast<double>(p.nsize) * squares);
  });
}

std::unique_ptr<Kernel> build_lrn(const NodeView& node) {
  return widened_kernel(node, [p = node.as<LRN>(), shape = node.inputs[0].shape](auto type) {
    using C = typename decltype(type)::type;
    return [=](const C* const* in, C* const* out) {
      write_norms(p, shape, in[0], out[0]);
      for_elements(shape.size(), [=, x = in[0], y = out[0]](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) y[i] = x[i] * std::pow(y[i], static_cast<C>(-p.beta));
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
          C *dx = out[0], *norms = out[1], *parts = norms + shape.size();
          write_norms(p, shape, x, norms);
          for_elements(shape.size(), [=](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i) {
              const C power = std::pow(norms[i], static_cast<C>(-p.beta));
              parts[i] = dy[i] * x[i] * power / norms[i];
              dx[i] = dy[i] * power;
            }
          });
          const double factor = 2 * p.alpha * p.beta / static_cast<double>(p.nsize);
          for_windows<C>(shape, p.nsize, [=](int64_t at, int64_t first, int64_t last, int64_t step) {
            double sum = 0;
            for (int64_t i = first; i <= last; i += step) sum += static_cast<double>(parts[i]);
            dx[at] -= static_cast<C>(factor * static_cast<double>(x[at]) * sum);
          });
        };
      },
      2 * shape.size() + 1);
}

// ---- InstanceNorm, LayerNorm and GroupNorm --------------------------------------------------------------------------

struct Statistics {
  double mean, deviation;
};
template <class C>
Statistics statistics_of(const C* x, const Rows& rows, double eps) {
  const double count = static_cast<double>(std::max<int64_t>(1, rows.length));
  double mean = 0, squares = 0;
  for (int64_t k = 0; k < rows.length; ++k) mean += static_cast<double>(x[k * rows.step]);
  mean /= count;
  for (int64_t k = 0; k < rows.length; ++k) {
    const double away = static_cast<double>(x[k * rows.step]) - mean;
    squares += away * away;
  }
  return {mean, std::sqrt(squares / count + eps)};
}

// Rows and, for each number, its scale: LayerNorm's numbers along a row differ, those of the others do not.
struct Scaled {
  Rows rows;
  int64_t channels;  // or groups of them; 0: LayerNorm
  double eps;
  bool shows_statistics;
  int64_t scale_of(int64_t row, int64_t k) const { return channels == 0 ? k : row % channels; }
  int64_t scales() const { return channels == 0 ? rows.length : channels; }
};

std::unique_ptr<Kernel> build_scaled(const NodeView& node, const Scaled& scaled) {
  return widened_kernel(node, [scaled](auto type) {
    using C = typename decltype(type)::type;
    return [scaled](const C* const* in, C* const* out) {
      const Rows rows = scaled.rows;
      rows.for_each([=, x = in[0], gamma = in[1], beta = in[2]](int64_t row, int64_t at) {
        const Statistics statistics = statistics_of(x + at, rows, scaled.eps);
        for (int64_t k = 0, i = at; k < rows.length; ++k, i += rows.step) {
          const int64_t own = scaled.scale_of(row, k);
          out[0][i] = static_cast<C>((static_cast<double>(x[i]) - statistics.mean) / statistics.deviation *
                                         static_cast<double>(gamma[own]) +
                                     static_cast<double>(beta[own]));
        }
        if (!scaled.shows_statistics) return;
        out[1][row] = static_cast<C>(statistics.mean);
        out[2][row] = static_cast<C>(statistics.deviation);
      });
    };
  });
}

// With x' the normalized data and g = dy·gamma: dx = (g - mean(g) - x'·mean(g·x')) / deviation. gamma's gradient is the
// sum of dy·x', beta's that of dy; both are summed over the rows in order, from what each row leaves in spare memory.
std::unique_ptr<Kernel> build_scaled_grad(const NodeView& node, const Scaled& scaled) {
  const int64_t count = scaled.rows.count(), total = node.inputs[1].shape.size();
  return widened_kernel(
      node,
      [=](auto type) {
        using C = typename decltype(type)::type;
        return [=](const C* const* in, C* const* out) {
          const Rows rows = scaled.rows;
          const C *dy = in[0], *x = in[1], *gamma = in[2];
          C* const dx = out[0];
          auto* const statistics = reinterpret_cast<Statistics*>(out[3]);  // of each row
          rows.for_each([=](int64_t row, int64_t at) {
            const Statistics s = statistics_of(x + at, rows, scaled.eps);
            statistics[row] = s;
            const double each = 1 / static_cast<double>(std::max<int64_t>(1, rows.length));
            double mean = 0, product = 0;
            for (int64_t k = 0, i = at; k < rows.length; ++k, i += rows.step) {
              const double g = static_cast<double>(dy[i]) * static_cast<double>(gamma[scaled.scale_of(row, k)]);
              mean += g;
              product += g * (static_cast<double>(x[i]) - s.mean) / s.deviation;
            }
            mean *= each;
            product *= each;
            for (int64_t k = 0, i = at; k < rows.length; ++k, i += rows.step) {
              const double g = static_cast<double>(dy[i]) * static_cast<double>(gamma[scaled.scale_of(row, k)]);
              const double normal = (static_cast<double>(x[i]) - s.mean) / s.deviation;
              dx[i] = static_cast<C>((g - mean - normal * product) / s.deviation);
            }
          });
          // One thread takes all numbers of some scales.
          parallel_for(scaled.scales(),
                       std::max<int64_t>(1, element_grain * scaled.scales() / std::max<int64_t>(1, total)),
                       [=](int64_t begin, int64_t end) {
                         for (int64_t own = begin; own < end; ++own) {
                           double by_gamma = 0, by_beta = 0;
                           const auto add = [&](int64_t row, int64_t i) {
                             by_beta += static_cast<double>(dy[i]);
                             by_gamma += static_cast<double>(dy[i]) *
                                         (static_cast<double>(x[i]) - statistics[row].mean) / statistics[row].deviation;
                           };
                           if (scaled.channels == 0) {
                             for (int64_t row = 0; row < count; ++row) add(row, rows.start(row) + own * rows.step);
                           } else {
                             for (int64_t row = own; row < count; row += scaled.channels)
                               for (int64_t k = 0; k < rows.length; ++k) add(row, row * rows.length + k);
                           }
                           out[1][own] = static_cast<C>(by_gamma);
                           out[2][own] = static_cast<C>(by_beta);
                         }
                       });
        };
      },
      4 * count + 1);  // room for two doubles a row, whatever C
}

Scaled instances(const Shape& data, double eps) {
  return {{data[0] * data[1], data.size(2, data.rank()), 1}, data[1], eps, false};
}
template <class P>
Scaled layers(const NodeView& node, const Shape& data) {
  const P& p = node.as<P>();
  return {along(data, data.axis(p.axis, node.where())), 0, p.eps, true};
}
Scaled groups(const GroupNorm& p, const Shape& data) {
  return {{data[0] * p.num_groups, data.size(1, data.rank()) / p.num_groups, 1}, p.num_groups, p.eps, true};
}

}  // namespace

void add_normalize(ImplementationTable& table) {
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
