// Normalization of rows: by length, and to mean 0 and variance 1. A row is read several times by one team of threads,
// from the caches after the first time. Sums are in float (double for float64) around the mean. LRN, over neighbouring
// channels, is at the end.
#include "symbind/ops/normalize.h"

#include "symbind/backend/cuda/channels.cuh"
#include "symbind/backend/cuda/device.h"
#include "symbind/backend/cuda/rows.cuh"
#include "symbind/backend/cuda/step.h"
#include "symbind/backend/freestanding.h"
#include "symbind/passes/target.h"

namespace symbind::cuda_backend {
namespace {

std::string refuse(const NodeView& node) {
  const DType dtype = node.outputs[0].dtype;
  if (!is_floating(dtype)) return "wants floating numbers";
  for (const Tensor& input : node.inputs) {
    if (input.dtype != dtype) return "arrays of different types";
    if (input.layout != Layout::plain) return "wants plain arrays";
  }
  return "";
}

// Are all of them aligned to packs? Null ones are.
template <class... Arrays>
bool all_aligned(const Arrays*... arrays) {
  return (aligned_for_packs(arrays) && ...);
}

// ---- L2Normalization ------------------------------------------------------------------------------------------------

AxisView rows_of(const L2Normalization& p, const Shape& shape) {
  if (p.mode == "channel") return view_along(shape, 1);
  const int split = p.mode == "instance" ? 1 : 2;
  return {shape.size(0, split), shape.size(split, shape.rank()), 1};
}

template <class T>
struct L2Rows {
  using C = compute_type<T>;
  const T* x;
  T* y;
  int64_t length, inner;
  C eps;

  template <class Team, int width>
  __device__ void operator()(int64_t, int64_t start) const {
    C squares = 0;
    for (int64_t k = Team::lane() * width; k < length; k += Team::size() * width) {
      const auto pack = read_row<width>(x + start, k, inner);
#pragma unroll
      for (int i = 0; i < width; ++i) squares += load(pack.element[i]) * load(pack.element[i]);
    }
    const C scale = C(1) / libm::sqrt(eps + Team::template combined<Add>(squares));
    for (int64_t k = Team::lane() * width; k < length; k += Team::size() * width) {
      auto pack = read_row<width>(x + start, k, inner);
#pragma unroll
      for (int i = 0; i < width; ++i) pack.element[i] = store<T>(load(pack.element[i]) * scale);
      write_row<width>(y + start, k, inner, pack);
    }
  }
};

// dy / length - x · sum(dy·x) / length³
template <class T>
struct L2GradientRows {
  using C = compute_type<T>;
  const T *dy, *x;
  T* dx;
  int64_t length, inner;
  C eps;

  template <class Team, int width>
  __device__ void operator()(int64_t, int64_t start) const {
    C squares = 0, products = 0;
    for (int64_t k = Team::lane() * width; k < length; k += Team::size() * width) {
      const auto of_x = read_row<width>(x + start, k, inner), of_dy = read_row<width>(dy + start, k, inner);
#pragma unroll
      for (int i = 0; i < width; ++i) {
        squares += load(of_x.element[i]) * load(of_x.element[i]);
        products += load(of_dy.element[i]) * load(of_x.element[i]);
      }
    }
    squares = Team::template combined<Add>(squares);
    products = Team::template combined<Add>(products);
    const C scale = C(1) / libm::sqrt(eps + squares), other = products * scale * scale * scale;
    for (int64_t k = Team::lane() * width; k < length; k += Team::size() * width) {
      const auto of_x = read_row<width>(x + start, k, inner), of_dy = read_row<width>(dy + start, k, inner);
      Pack<T, width> result;
#pragma unroll
      for (int i = 0; i < width; ++i)
        result.element[i] = store<T>(load(of_dy.element[i]) * scale - load(of_x.element[i]) * other);
      write_row<width>(dx + start, k, inner, result);
    }
  }
};

std::unique_ptr<Kernel> build_l2(const NodeView& node) {
  const auto& p = node.as<L2Normalization>();
  return visit_floating(node.outputs[0].dtype, [&]<class T>(std::type_identity<T>) {
    using C = compute_type<T>;
    return make_step(node,
                     [rows = rows_of(p, node.inputs[0].shape), eps = static_cast<C>(p.eps)](const Args& args) {
                       const T* const x = args.in<T>(0);
                       T* const y = args.out<T>();
                       queue_rows<widest<T>>(stream_of(args), rows, all_aligned(x, y),
                                             L2Rows<T>{x, y, rows.length, rows.inner, eps});
                     },
                     {.in_place = {{0, 0}}});
  });
}

std::unique_ptr<Kernel> build_l2_gradient(const NodeView& node) {
  const auto& p = node.as<L2NormalizationGrad>();
  return visit_floating(node.outputs[0].dtype, [&]<class T>(std::type_identity<T>) {
    using C = compute_type<T>;
    return make_step(node,
                     [rows = rows_of(p, node.inputs[1].shape), eps = static_cast<C>(p.eps)](const Args& args) {
                       const T *const dy = args.in<T>(0), *const x = args.in<T>(1);
                       T* const dx = args.out<T>();
                       queue_rows<widest<T>>(stream_of(args), rows, all_aligned(dy, x, dx),
                                             L2GradientRows<T>{dy, x, dx, rows.length, rows.inner, eps});
                     },
                     {.in_place = {{0, 0}, {1, 0}}});
  });
}

// ---- InstanceNorm, LayerNorm and GroupNorm --------------------------------------------------------------------------

// Rows, and which scale an element has: that of its row's channel or group (by_row), or that of its index along the
// row.
struct NormRows : AxisView {
  bool by_row;
  int64_t channels;  // or groups
  double eps;
};

NormRows instances(const Shape& data, double eps) {
  return {{data[0] * data[1], data.size(2, data.rank()), 1}, true, data[1], eps};
}
NormRows layers(const NodeView& node, const LayerNorm& p, const Shape& data) {
  return {view_along(data, data.axis(p.axis, node.where())), false, 0, p.eps};
}
NormRows groups(const GroupNorm& p, const Shape& data) {
  return {{data[0] * p.num_groups, data.size(1, data.rank()) / p.num_groups, 1}, true, p.num_groups, p.eps};
}

template <class C>
struct RowStatistics {
  C mean, deviation;
};
template <class Team, int width, class T>
__device__ RowStatistics<compute_type<T>> statistics_of(const T* row, int64_t length, int64_t inner, double eps) {
  using C = compute_type<T>;
  const C count = static_cast<C>(length > 1 ? length : 1);
  C sum = 0;
  for (int64_t k = Team::lane() * width; k < length; k += Team::size() * width) {
    const auto pack = read_row<width>(row, k, inner);
#pragma unroll
    for (int i = 0; i < width; ++i) sum += load(pack.element[i]);
  }
  const C mean = Team::template combined<Add>(sum) / count;
  C squares = 0;
  for (int64_t k = Team::lane() * width; k < length; k += Team::size() * width) {
    const auto pack = read_row<width>(row, k, inner);
#pragma unroll
    for (int i = 0; i < width; ++i) {
      const C away = load(pack.element[i]) - mean;
      squares += away * away;
    }
  }
  squares = Team::template combined<Add>(squares);
  return {mean, libm::sqrt(squares / count + static_cast<C>(eps))};
}

template <class T>
struct NormForward {
  using C = compute_type<T>;
  NormRows rows;
  const T *x, *gamma, *beta;
  T *y, *means, *deviations;  // the last two may be null

  template <class Team, int width>
  __device__ void operator()(int64_t row, int64_t start) const {
    const auto [mean, deviation] = statistics_of<Team, width>(x + start, rows.length, rows.inner, rows.eps);
    const C scale = C(1) / deviation;
    const bool by_row = rows.by_row;
    const C own = by_row ? load(gamma[row % rows.channels]) * scale : C(0);
    const C shift = by_row ? load(beta[row % rows.channels]) : C(0);
    for (int64_t k = Team::lane() * width; k < rows.length; k += Team::size() * width) {
      auto pack = read_row<width>(x + start, k, rows.inner);
      if (by_row) {
#pragma unroll
        for (int i = 0; i < width; ++i) pack.element[i] = store<T>((load(pack.element[i]) - mean) * own + shift);
      } else {
        const auto of_gamma = read_row<width>(gamma, k, 1), of_beta = read_row<width>(beta, k, 1);
#pragma unroll
        for (int i = 0; i < width; ++i)
          pack.element[i] =
              store<T>((load(pack.element[i]) - mean) * scale * load(of_gamma.element[i]) + load(of_beta.element[i]));
      }
      write_row<width>(y + start, k, rows.inner, pack);
    }
    if (Team::lane() != 0) return;
    if (means) means[row] = store<T>(mean);
    if (deviations) deviations[row] = store<T>(deviation);
  }
};

// What a row stores for the gradients of the scales: its statistics, and the sums of dy and of dy·x' over it.
template <class C>
struct RowSums {
  C mean, scale, grads, products;
};

// With x' the normalized data and g = dy·gamma: dx = (g - mean(g) - x'·mean(g·x')) / deviation. A gamma of the whole
// row is left out of the sums.
template <class T>
struct NormBackward {
  using C = compute_type<T>;
  NormRows rows;
  const T *dy, *x, *gamma;
  T* dx;  // may be null
  RowSums<C>* left;

  template <class Team, int width>
  __device__ void operator()(int64_t row, int64_t start) const {
    const auto [mean, deviation] = statistics_of<Team, width>(x + start, rows.length, rows.inner, rows.eps);
    const C scale = C(1) / deviation, each = C(1) / static_cast<C>(rows.length > 1 ? rows.length : 1);
    C grads = 0, products = 0;
    for (int64_t k = Team::lane() * width; k < rows.length; k += Team::size() * width) {
      C g[width], normal[width];
      read<width>(start, k, mean, scale, g, normal);
#pragma unroll
      for (int i = 0; i < width; ++i) {
        grads += g[i];
        products += g[i] * normal[i];
      }
    }
    grads = Team::template combined<Add>(grads);
    products = Team::template combined<Add>(products);
    if (Team::lane() == 0) left[row] = {mean, scale, grads, products};
    if (!dx) return;
    const C own = (rows.by_row ? load(gamma[row % rows.channels]) : C(1)) * scale;
    for (int64_t k = Team::lane() * width; k < rows.length; k += Team::size() * width) {
      C g[width], normal[width];
      read<width>(start, k, mean, scale, g, normal);
      Pack<T, width> result;
#pragma unroll
      for (int i = 0; i < width; ++i)
        result.element[i] = store<T>((g[i] - grads * each - normal[i] * (products * each)) * own);
      write_row<width>(dx + start, k, rows.inner, result);
    }
  }

 private:
  template <int width>
  __device__ void read(int64_t start, int64_t k, C mean, C scale, C* g, C* normal) const {
    const auto of_dy = read_row<width>(dy + start, k, rows.inner), of_x = read_row<width>(x + start, k, rows.inner);
#pragma unroll
    for (int i = 0; i < width; ++i) {
      g[i] = load(of_dy.element[i]);
      normal[i] = (load(of_x.element[i]) - mean) * scale;
    }
    if (rows.by_row) return;
    const auto of_gamma = read_row<width>(gamma, k, 1);
#pragma unroll
    for (int i = 0; i < width; ++i) g[i] *= load(of_gamma.element[i]);
  }
};

// The gradients of the scales of channels or groups: a warp sums what the rows of one have stored.
template <class T>
__global__ void sum_scales(const RowSums<compute_type<T>>* left, int64_t rows, int64_t channels, T* gamma_grad,
                           T* beta_grad) {
  for (int64_t channel = WarpTeam::first_row(); channel < channels; channel += WarpTeam::row_step()) {
    double by_gamma = 0, by_beta = 0;
    for (int64_t row = channel + WarpTeam::lane() * channels; row < rows; row += WarpTeam::size() * channels) {
      by_gamma += static_cast<double>(left[row].products);
      by_beta += static_cast<double>(left[row].grads);
    }
    by_gamma = WarpTeam::combined<Add>(by_gamma);
    by_beta = WarpTeam::combined<Add>(by_beta);
    if (WarpTeam::lane() != 0) continue;
    if (gamma_grad) gamma_grad[channel] = convert_element<T>(by_gamma);
    if (beta_grad) beta_grad[channel] = convert_element<T>(by_beta);
  }
}

// The gradients of LayerNorm's scales are sums over the rows: dy·x' and dy at each index.
template <class T>
struct ColumnTerms {
  static constexpr int blocks_at_once = 2;
  using Compute = compute_type<T>;
  struct OfChannel {};
  template <int width>
  struct Values {
    Packed<T, width> dy, x;
    Compute mean, scale;
  };
  const T *dy, *x;
  const RowSums<Compute>* rows;
  int64_t length, inner;

  __device__ OfChannel at(int64_t) const { return {}; }
  template <int width>
  __device__ Values<width> load(int64_t index) const {
    const int64_t row = inner == 1 ? index / length : index / (length * inner) * inner + index % inner;
    return {load_packed<width>(dy + index), load_packed<width>(x + index), rows[row].mean, rows[row].scale};
  }
  template <int width>
  __device__ PairOf<Compute> operator()(OfChannel, const Values<width>& values, int k) const {
    const Compute by = values.dy[k];
    return {by * ((values.x[k] - values.mean) * values.scale), by};
  }
};
template <class T>
struct FinishColumns {
  T *gamma_grad, *beta_grad;
  __device__ void operator()(int64_t k, double by_gamma, double by_beta) const {
    if (gamma_grad) gamma_grad[k] = convert_element<T>(by_gamma);
    if (beta_grad) beta_grad[k] = convert_element<T>(by_beta);
  }
};

std::unique_ptr<Kernel> build_forward(const NodeView& node, const NormRows& rows, bool has_statistics) {
  return visit_floating(node.outputs[0].dtype, [&]<class T>(std::type_identity<T>) {
    return make_step(node,
                     [rows, has_statistics](const Args& args) {
                       const NormForward<T> body{rows,
                                                 args.in<T>(0),
                                                 args.in<T>(1),
                                                 args.in<T>(2),
                                                 args.out<T>(),
                                                 has_statistics ? args.out<T>(1) : nullptr,
                                                 has_statistics ? args.out<T>(2) : nullptr};
                       const bool aligned =
                           all_aligned(body.x, body.y) && (rows.by_row || all_aligned(body.gamma, body.beta));
                       queue_rows<widest<T>>(stream_of(args), rows, aligned, body);
                     },
                     {.in_place = {{0, 0}}});
  });
}

// For LayerNorm the sums of the columns read dy and x after dx has been written: these must not share memory.
std::unique_ptr<Kernel> build_backward(const NodeView& node, const NormRows& rows) {
  return visit_floating(node.outputs[0].dtype, [&]<class T>(std::type_identity<T>) {
    using C = compute_type<T>;
    const bool by_row = rows.by_row;
    const ChannelShape columns{rows.outer, rows.length, rows.inner};
    const size_t of_rows = static_cast<size_t>(rows.row_count()) * sizeof(RowSums<C>);
    const size_t of_columns = by_row || rows.length == 0 ? 0 : piece_bytes(columns, sizeof(C));
    KernelTraits traits{.scratch_bytes = of_rows + of_columns};
    if (by_row) traits.in_place = {{0, 0}, {1, 0}};
    return make_step(
        node,
        [=](const Args& args) {
          const cudaStream_t stream = stream_of(args);
          auto* const left = static_cast<RowSums<C>*>(args.scratch);
          const NormBackward<T> body{rows, args.in<T>(0), args.in<T>(1), args.in<T>(2), args.out<T>(), left};
          const bool wide = all_aligned(body.dy, body.x), aligned = wide && all_aligned(body.dx);
          queue_rows<widest<T>>(stream, rows, aligned && (by_row || all_aligned(body.gamma)), body);
          T *const gamma_grad = args.out<T>(1), *const beta_grad = args.out<T>(2);
          if (by_row) {
            sum_scales<<<blocks_for(rows.channels, block_size / 32), block_size, 0, stream>>>(
                left, rows.row_count(), rows.channels, gamma_grad, beta_grad);
          } else if (rows.length > 0) {
            queue_channel_sums<T>(stream, columns, wide, ColumnTerms<T>{body.dy, body.x, left, rows.length, rows.inner},
                                  static_cast<std::byte*>(args.scratch) + of_rows,
                                  FinishColumns<T>{gamma_grad, beta_grad});
          }
        },
        traits);
  });
}

// ---- LRN ------------------------------------------------------------------------------------------------------------

struct Windows {
  int64_t channels, space, count, reach;
  double factor, knorm, beta;  // factor: alpha / nsize

  Windows(const LRN& p, const Shape& shape)
      : channels(shape[1]),
        space(shape[2] * shape[3]),
        count(shape.size()),
        reach((p.nsize - 1) / 2),
        factor(p.alpha / static_cast<double>(p.nsize)),
        knorm(p.knorm),
        beta(p.beta) {}

  // Σ of term(element) over the channels around that of element i.
  template <class C, class Term>
  __device__ C sum(int64_t i, const Term& term) const {
    const int64_t channel = i / space % channels;
    const int64_t below = channel < reach ? channel : reach;
    const int64_t above = channels - 1 - channel < reach ? channels - 1 - channel : reach;
    C total = 0;
    for (int64_t at = i - below * space; at <= i + above * space; at += space) total += term(at);
    return total;
  }
  template <class C, class T>
  __device__ C norm(const T* x, int64_t i) const {
    return static_cast<C>(knorm) + static_cast<C>(factor) * sum<C>(i, [=](int64_t at) {
                                     const C value = load(x[at]);
                                     return value * value;
                                   });
  }
};

template <class T>
__global__ void lrn(const T* x, T* y, Windows windows) {
  using C = compute_type<T>;
  for (int64_t i = first_element(); i < windows.count; i += element_step())
    y[i] = store<T>(load(x[i]) * libm::pow(windows.norm<C>(x, i), static_cast<C>(-windows.beta)));
}

// norm^-beta, and dy·x·norm^(-beta-1), which the neighbours sum.
template <class T>
__global__ void lrn_parts(const T* dy, const T* x, compute_type<T>* powers, compute_type<T>* parts, Windows windows) {
  using C = compute_type<T>;
  for (int64_t i = first_element(); i < windows.count; i += element_step()) {
    const C norm = windows.norm<C>(x, i), power = libm::pow(norm, static_cast<C>(-windows.beta));
    powers[i] = power;
    parts[i] = load(dy[i]) * load(x[i]) * power / norm;
  }
}
template <class T>
__global__ void lrn_gradient(const T* dy, const T* x, const compute_type<T>* powers, const compute_type<T>* parts,
                             T* dx, Windows windows) {
  using C = compute_type<T>;
  const C factor = static_cast<C>(2 * windows.factor * windows.beta);
  for (int64_t i = first_element(); i < windows.count; i += element_step()) {
    const C sum = windows.sum<C>(i, [=](int64_t at) { return parts[at]; });
    dx[i] = store<T>(load(dy[i]) * powers[i] - factor * load(x[i]) * sum);
  }
}

std::unique_ptr<Kernel> build_lrn(const NodeView& node) {
  return visit_floating(node.outputs[0].dtype, [&]<class T>(std::type_identity<T>) {
    return make_step(node, [windows = Windows(node.as<LRN>(), node.inputs[0].shape)](const Args& args) {
      if (windows.count == 0) return;
      lrn<<<blocks_for(windows.count), block_size, 0, stream_of(args)>>>(args.in<T>(0), args.out<T>(), windows);
    });
  });
}

std::unique_ptr<Kernel> build_lrn_gradient(const NodeView& node) {
  return visit_floating(node.outputs[0].dtype, [&]<class T>(std::type_identity<T>) {
    using C = compute_type<T>;
    const Windows windows(node.as<LRNGrad>(), node.inputs[1].shape);
    return make_step(
        node,
        [windows](const Args& args) {
          if (windows.count == 0) return;
          C *const powers = static_cast<C*>(args.scratch), *const parts = powers + windows.count;
          const unsigned blocks = blocks_for(windows.count);
          lrn_parts<<<blocks, block_size, 0, stream_of(args)>>>(args.in<T>(0), args.in<T>(1), powers, parts, windows);
          lrn_gradient<<<blocks, block_size, 0, stream_of(args)>>>(args.in<T>(0), args.in<T>(1), powers, parts,
                                                                   args.out<T>(), windows);
        },
        {.in_place = {{0, 0}, {1, 0}}, .scratch_bytes = 2 * static_cast<size_t>(windows.count) * sizeof(C)});
  });
}

}  // namespace

void add_normalize(ImplementationTable& table) {
  table.add<L2Normalization>({"cuda", refuse, build_l2});
  table.add<L2NormalizationGrad>({"cuda", refuse, build_l2_gradient});
  table.add<LRN>({"cuda", refuse, build_lrn});
  table.add<LRNGrad>({"cuda", refuse, build_lrn_gradient});
  table.add<InstanceNorm>({"cuda", refuse, [](const NodeView& node) {
                             const double eps = node.as<InstanceNorm>().eps;
                             return build_forward(node, instances(node.inputs[0].shape, eps), false);
                           }});
  table.add<InstanceNormGrad>({"cuda", refuse, [](const NodeView& node) {
                                 const double eps = node.as<InstanceNormGrad>().eps;
                                 return build_backward(node, instances(node.inputs[1].shape, eps));
                               }});
  table.add<LayerNorm>({"cuda", refuse, [](const NodeView& node) {
                          const auto& p = node.as<LayerNorm>();
                          return build_forward(node, layers(node, p, node.inputs[0].shape), true);
                        }});
  table.add<LayerNormGrad>({"cuda", refuse, [](const NodeView& node) {
                              const auto& p = node.as<LayerNormGrad>();
                              return build_backward(node, layers(node, p, node.inputs[1].shape));
                            }});
  table.add<GroupNorm>({"cuda", refuse, [](const NodeView& node) {
                          return build_forward(node, groups(node.as<GroupNorm>(), node.inputs[0].shape), true);
                        }});
  table.add<GroupNormGrad>({"cuda", refuse, [](const NodeView& node) {
                              return build_backward(node, groups(node.as<GroupNormGrad>(), node.inputs[1].shape));
                            }});
}

}  // namespace symbind::cuda_backend
