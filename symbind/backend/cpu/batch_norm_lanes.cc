// BatchNorm of float32 arrays whose channels are adjacent (blocked or channels-last), alone and with ReLU. A thread
// runs all passes over a slab of channels, so that the second pass finds the data in the cache.
//
// Every function and lambda here is inlined into the loop that is compiled for the processor at hand: a lambda that is
// not inlined would be compiled for the baseline instruction set.
//
// Sums run in float over a few rows and in double over these partial sums. A variance is combined from partial ones
// about their own means, so that a mean far from zero costs no precision.
#include "symbind/backend/cpu/batch_norm_lanes.h"

#include <cmath>

#include "symbind/backend/cpu/channel_lanes.h"
#include "symbind/backend/cpu/loops.h"
#include "symbind/backend/cpu/row_implementations.h"
#include "symbind/ops/batch_norm.h"
#include "symbind/passes/target.h"

namespace symbind::cpu_backend {
namespace {

constexpr int64_t chunk_rows = 64;

// Calls visit(array offset of the first row, rows) for chunks of rows that are contiguous in memory.
template <class Visit>
[[gnu::always_inline]] inline void each_chunk(const Slab& slab, const Visit& visit) {
  for (int64_t image = 0; image < slab.images; ++image)
    for (int64_t row = 0; row < slab.rows; row += chunk_rows)
      visit(slab.start + image * slab.image_step + row * slab.row_step, std::min(chunk_rows, slab.rows - row));
}

// `columns` vectors of a row, starting `offset` channels into the slab.
template <int width_, int columns_>
struct Columns {
  using Vector = Lanes<width_>;
  static constexpr int width = width_, columns = columns_, channels = width * columns;
  static Vector at(const float* row, int column) { return load<Vector>(row + column * width); }
};

// Splits the width of a slab into whole vectors: calls visit.template operator()<Columns>(offset).
template <class Visit>
[[gnu::always_inline]] inline void each_columns(int64_t width, const Visit& visit) {
  int64_t offset = 0;
  for (; offset + 64 <= width; offset += 64) visit(Columns<16, 4>{}, offset);
  for (; offset + 16 <= width; offset += 16) visit(Columns<16, 1>{}, offset);
  for (; offset + 8 <= width; offset += 8) visit(Columns<8, 1>{}, offset);
  for (; offset < width; ++offset) visit(Columns<1, 1>{}, offset);
}

// ---- Forward --------------------------------------------------------------------------------------------------------

// Mean and biased variance of some channels.
template <class Some>
[[gnu::always_inline]] inline void measure(Some, const Slab& slab, int64_t offset, const float* x, double* mean,
                                           double* variance) {
  using Vector = typename Some::Vector;
  constexpr int width = Some::width, columns = Some::columns;
  double sums[Some::channels] = {}, squares[Some::channels] = {};
  double count = 0;
  each_chunk(
      slab, [&](int64_t start, int64_t rows) __attribute__((always_inline)) {
        const float* const first = x + start + offset;
        Vector sum[columns] = {}, square[columns] = {};
        for (int64_t r = 0; r < rows; ++r)
          for (int k = 0; k < columns; ++k) sum[k] += Some::at(first + r * slab.row_step, k);
        for (int k = 0; k < columns; ++k) sum[k] /= static_cast<float>(rows);
        for (int64_t r = 0; r < rows; ++r)
          for (int k = 0; k < columns; ++k) {
            const Vector away = Some::at(first + r * slab.row_step, k) - sum[k];
            square[k] += away * away;
          }
        // Combines the statistics of two parts: the distance of their means is added.
        const auto more = static_cast<double>(rows), all = count + more;
        float own_mean[Some::channels], own_square[Some::channels];
        for (int k = 0; k < columns; ++k) {
          store(own_mean + k * width, sum[k]);
          store(own_square + k * width, square[k]);
        }
        for (int c = 0; c < Some::channels; ++c) {
          const double between = static_cast<double>(own_mean[c]) - sums[c];
          sums[c] += between * (more / all);
          squares[c] += static_cast<double>(own_square[c]) + between * between * (count * more / all);
        }
        count = all;
      });
  for (int c = 0; c < Some::channels; ++c) {
    mean[c] = sums[c];
    variance[c] = squares[c] / std::max(count, 1.0);
  }
}

// The scale of a channel's elements after the mean is subtracted, and the shift added then.
struct PerChannel {
  const float *mean, *deviation, *gamma, *beta;  // gamma: null when it is taken as one

  template <class Vector>
  Vector scale(int64_t channel) const {
    const Vector reciprocal = load<Vector>(deviation + channel);
    return gamma ? load<Vector>(gamma + channel) * reciprocal : reciprocal;
  }
};

template <bool relu, class Vector>
[[gnu::always_inline]] inline Vector activated(Vector value) {
  const Vector zero{};
  return relu ? (value < zero ? zero : value) : value;
}

template <bool relu, class Some>
[[gnu::always_inline]] inline void normalise(Some, const Slab& slab, int64_t offset, const PerChannel& channel,
                                             const float* x, float* y) {
  using Vector = typename Some::Vector;
  constexpr int width = Some::width, columns = Some::columns;
  Vector mean[columns], scale[columns], shift[columns];
  for (int k = 0; k < columns; ++k) {
    const int64_t first = slab.first + offset + k * width;
    mean[k] = load<Vector>(channel.mean + first);
    scale[k] = channel.scale<Vector>(first);
    shift[k] = load<Vector>(channel.beta + first);
  }
  each_chunk(
      slab, [&](int64_t start, int64_t rows) __attribute__((always_inline)) {
        for (int64_t r = 0; r < rows; ++r)
          for (int k = 0; k < columns; ++k) {
            const int64_t at = start + offset + r * slab.row_step + k * width;
            store(y + at, activated<relu>((load<Vector>(x + at) - mean[k]) * scale[k] + shift[k]));
          }
      });
}

template <bool relu>
std::unique_ptr<Kernel> build_forward(const NodeView& node, const BatchNorm& p, const Slabs& slabs) {
  const bool own = uses_batch_statistics(p, node.is_train);
  // MXNet's momentum is a float.
  const float momentum = static_cast<float>(p.momentum), rest = 1 - momentum;
  return make_kernel(
      [=](const Args& args) {
        const float* x = args.in<float>(0);
        float *moving_mean = args.state<float>(3), *moving_var = args.state<float>(4);
        float *y = args.out<float>(0), *mean = args.out<float>(1), *deviation = args.out<float>(2);
        const PerChannel channel{mean, deviation, p.fix_gamma ? nullptr : args.in<float>(1), args.in<float>(2)};
        for_elements(
            slabs.count(),
            [=](int64_t begin, int64_t end) {
              for (int64_t i = begin; i < end; ++i) {
                const Slab slab = slabs.at(i);
                double own_mean[64], variance[64];
                if (own)
                  each_columns(
                      slab.width, [&](auto some, int64_t offset) __attribute__((always_inline)) {
                        measure(some, slab, offset, x, own_mean + offset, variance + offset);
                      });
                for (int64_t c = 0; c < slab.width; ++c) {
                  const int64_t to = slab.first + c;
                  if (own) {
                    mean[to] = static_cast<float>(own_mean[c]);
                    deviation[to] = static_cast<float>(1 / std::sqrt(variance[c] + p.eps));
                    moving_mean[to] = moving_mean[to] * momentum + mean[to] * rest;
                    moving_var[to] = moving_var[to] * momentum + static_cast<float>(variance[c]) * rest;
                  } else {
                    mean[to] = moving_mean[to];
                    deviation[to] = static_cast<float>(1 / std::sqrt(static_cast<double>(moving_var[to]) + p.eps));
                  }
                }
                each_columns(
                    slab.width, [&](auto some, int64_t offset) __attribute__((always_inline)) {
                      normalise<relu>(some, slab, offset, channel, x, y);
                    });
              }
            },
            slabs.grain());
      },
      {.in_place = {{0, 0}}});
}

// ---- Backward -------------------------------------------------------------------------------------------------------

// The gradient through ReLU: zero where the result was zero.
template <bool relu, class Vector>
[[gnu::always_inline]] inline Vector through_relu(Vector dy, Vector away, Vector scale, Vector shift) {
  const Vector zero{};
  return relu ? (away * scale + shift > zero ? dy : zero) : dy;
}

// The sums of dy and of dy · (x - mean) over some channels.
template <bool relu, class Some>
[[gnu::always_inline]] inline void add_up(Some, const Slab& slab, int64_t offset, const PerChannel& channel,
                                          const float* dy, const float* x, double* first_sum, double* second_sum) {
  using Vector = typename Some::Vector;
  constexpr int width = Some::width, columns = Some::columns;
  Vector mean[columns], scale[columns], shift[columns] = {};
  for (int k = 0; k < columns; ++k) {
    const int64_t first = slab.first + offset + k * width;
    mean[k] = load<Vector>(channel.mean + first);
    scale[k] = channel.scale<Vector>(first);
    if (relu) shift[k] = load<Vector>(channel.beta + first);
  }
  std::fill_n(first_sum, Some::channels, 0.0);
  std::fill_n(second_sum, Some::channels, 0.0);
  each_chunk(
      slab, [&](int64_t start, int64_t rows) __attribute__((always_inline)) {
        Vector sum[columns] = {}, product[columns] = {};
        for (int64_t r = 0; r < rows; ++r)
          for (int k = 0; k < columns; ++k) {
            const int64_t at = start + offset + r * slab.row_step + k * width;
            const Vector away = load<Vector>(x + at) - mean[k];
            const Vector gradient = through_relu<relu>(load<Vector>(dy + at), away, scale[k], shift[k]);
            sum[k] += gradient;
            product[k] += gradient * away;
          }
        float sums[Some::channels], products[Some::channels];
        for (int k = 0; k < columns; ++k) {
          store(sums + k * width, sum[k]);
          store(products + k * width, product[k]);
        }
        for (int c = 0; c < Some::channels; ++c) {
          first_sum[c] += static_cast<double>(sums[c]);
          second_sum[c] += static_cast<double>(products[c]);
        }
      });
}

// dx = scale · (dy - of_mean - (x - mean) · of_deviation), plus another gradient.
template <bool relu, class Some>
[[gnu::always_inline]] inline void spread(Some, const Slab& slab, int64_t offset, const PerChannel& channel,
                                          const float* of_mean, const float* of_deviation, const float* dy,
                                          const float* x, const float* more, float* dx) {
  using Vector = typename Some::Vector;
  constexpr int width = Some::width, columns = Some::columns;
  Vector mean[columns], scale[columns], shift[columns] = {}, less[columns], slope[columns];
  for (int k = 0; k < columns; ++k) {
    const int64_t first = slab.first + offset + k * width;
    mean[k] = load<Vector>(channel.mean + first);
    scale[k] = channel.scale<Vector>(first);
    if (relu) shift[k] = load<Vector>(channel.beta + first);
    less[k] = load<Vector>(of_mean + k * width);
    slope[k] = load<Vector>(of_deviation + k * width);
  }
  each_chunk(
      slab, [&](int64_t start, int64_t rows) __attribute__((always_inline)) {
        for (int64_t r = 0; r < rows; ++r)
          for (int k = 0; k < columns; ++k) {
            const int64_t at = start + offset + r * slab.row_step + k * width;
            const Vector away = load<Vector>(x + at) - mean[k];
            const Vector gradient = through_relu<relu>(load<Vector>(dy + at), away, scale[k], shift[k]);
            Vector result = scale[k] * (gradient - less[k] - away * slope[k]);
            if (more) result += load<Vector>(more + at);
            store(dx + at, result);
          }
      });
}

// The input indices of the two gradients.
struct GradientInputs {
  int beta = -1, mean, deviation, sum = -1;
};

template <bool relu>
std::unique_ptr<Kernel> build_backward(const NodeView& node, const BatchNorm& p, const Slabs& slabs, double per_channel,
                                       const GradientInputs& at) {
  const bool own = uses_batch_statistics(p, node.is_train);
  KernelTraits traits{.in_place = {{0, 0}, {1, 0}}};
  if (at.sum >= 0) traits.in_place.emplace_back(at.sum, 0);
  return make_kernel(
      [=](const Args& args) {
        const auto input = [&](int index) { return index < 0 ? nullptr : args.in<float>(static_cast<size_t>(index)); };
        const float *dy = input(0), *x = input(1), *more = input(at.sum);
        const PerChannel channel{input(at.mean), input(at.deviation), p.fix_gamma ? nullptr : input(2), input(at.beta)};
        float *dx = args.out<float>(0), *dgamma = args.out<float>(1), *dbeta = args.out<float>(2);
        for_elements(
            slabs.count(),
            [=](int64_t begin, int64_t end) {
              for (int64_t i = begin; i < end; ++i) {
                const Slab slab = slabs.at(i);
                double sums[64], products[64];
                float of_mean[64], of_deviation[64];
                each_columns(
                    slab.width, [&](auto some, int64_t offset) __attribute__((always_inline)) {
                      add_up<relu>(some, slab, offset, channel, dy, x, sums + offset, products + offset);
                    });
                for (int64_t c = 0; c < slab.width; ++c) {
                  const int64_t to = slab.first + c;
                  const double own_dgamma = products[c] * static_cast<double>(channel.deviation[to]);
                  dbeta[to] = static_cast<float>(sums[c]);
                  dgamma[to] = p.fix_gamma ? 0.0f : static_cast<float>(own_dgamma);
                  of_mean[c] = own ? static_cast<float>(sums[c] / per_channel) : 0.0f;
                  of_deviation[c] =
                      own ? static_cast<float>(own_dgamma * static_cast<double>(channel.deviation[to]) / per_channel)
                          : 0.0f;
                }
                each_columns(
                    slab.width, [&](auto some, int64_t offset) __attribute__((always_inline)) {
                      spread<relu>(some, slab, offset, channel, of_mean + offset, of_deviation + offset, dy, x, more,
                                   dx);
                    });
              }
            },
            slabs.grain());
      },
      traits);
}

// ---- The four operators ---------------------------------------------------------------------------------------------

template <class P>
constexpr bool is_gradient = std::is_same_v<P, BatchNormGrad> || std::is_same_v<P, BatchNormReluGrad>;

template <class P>
std::unique_ptr<Kernel> build(const NodeView& node) {
  const P& p = node.as<P>();
  const Tensor& output = node.outputs[0];
  const BatchNormSize size = size_of(p, output.shape);
  const bool side_by_side = output.layout != Layout::plain || size.inner == 1;
  if (!side_by_side) {
    auto rows = build_batch_norm_rows<P>(node);
    return rows ? std::move(rows) : last_resort(node.op, cpu()).build(node);
  }
  const Slabs slabs(size.outer, size.channels, size.inner, block_of(output.layout));
  const auto count = static_cast<double>(std::max<int64_t>(size.per_channel(), 1));
  if constexpr (std::is_same_v<P, BatchNormGrad>) {
    return build_backward<false>(node, p, slabs, count, {.mean = 3, .deviation = 4});
  } else if constexpr (std::is_same_v<P, BatchNormReluGrad>) {
    return build_backward<true>(node, p, slabs, count,
                                {.beta = 3, .mean = 4, .deviation = 5, .sum = p.with_sum ? 6 : -1});
  } else {
    return build_forward<std::is_same_v<P, BatchNormRelu>>(node, p, slabs);
  }
}

std::string refuse(const NodeView& node) {
  return node.outputs[0].dtype == DType::float32 ? "" : join("element type ", node.outputs[0].dtype);
}

// Follows the data; statistics and parameters have one axis and no layout.
template <class P>
std::optional<PreferredLayouts> preferred_layouts(const NodeView& node) {
  const Tensor& data = node.inputs[is_gradient<P> ? 1 : 0];
  if (data.layout == Layout::plain || data.shape.axis(node.as<P>().axis, node.where()) != 1) return std::nullopt;
  PreferredLayouts preferred{std::vector(node.inputs.size(), Layout::plain),
                             std::vector(node.outputs.size(), Layout::plain)};
  preferred.inputs[0] = preferred.outputs[0] = data.layout;
  if (is_gradient<P>) preferred.inputs[1] = data.layout;
  if constexpr (std::is_same_v<P, BatchNormReluGrad>)
    if (node.as<P>().with_sum) preferred.inputs[6] = data.layout;
  return preferred;
}

template <class P>
void add(ImplementationTable& table) {
  table.add<P>({"lanes", refuse, build<P>, preferred_layouts<P>, false, Tier::optimised});
}

}  // namespace

void add_batch_norm_lanes(ImplementationTable& table) {
  add<BatchNorm>(table);
  add<BatchNormRelu>(table);
  add<BatchNormGrad>(table);
  add<BatchNormReluGrad>(table);
}

}  // namespace symbind::cpu_backend
