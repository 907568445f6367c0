// Pooling by a thread per result. Channels-last arrays are processed 16 bytes of neighbouring channels at a time. In
// the gradients each element of the data sums those of the windows that contain it, without atomic additions; for max
// pooling (max_pool.h) a first pass writes which element of each window is its maximum. Where one window has all
// elements, there are few results of many terms: other kinds are then a reduction, and their gradient a broadcast.
#include "symbind/ops/pool.h"

#include "symbind/backend/cuda/folds.cuh"
#include "symbind/backend/cuda/max_pool.h"
#include "symbind/backend/cuda/pool_windows.cuh"
#include "symbind/backend/cuda/step.h"
#include "symbind/backend/functions.h"
#include "symbind/ops/conv.h"
#include "symbind/passes/target.h"

namespace symbind::cuda_backend {
namespace {

// A term of a p-norm, and the norm of the terms' sum: with p = 3 of either sign, as in MXNet.
template <class C>
__device__ C norm_term(C value, int p) {
  return p == 1 ? value : p == 2 ? value * value : value * value * value;
}
template <class C>
__device__ C norm_of(C sum, int p) {
  return p == 1 ? sum : p == 2 ? libm::sqrt(sum) : libm::cbrt(sum);
}

// The fold (folds.cuh) of a window that has all elements. Sums are norms with p = 1.
template <class T>
struct FoldWindow {
  using Part = compute_type<T>;
  int divisor, norm;

  __device__ Part start() const { return Part(0); }
  __device__ Part take(Part part, Part value, int64_t) const { return part + norm_term(value, norm); }
  __device__ Part join(Part a, Part b) const { return a + b; }
  __device__ void finish(Part part, T* out, int64_t i) const {
    out[i] = store<T>(norm_of(part, norm) / static_cast<Part>(divisor));
  }
};

// Of any kind but max.
template <class T, int width, PoolKind kind>
__global__ void pool(const T* x, T* y, PoolWindows w, int64_t count) {
  using C = compute_type<T>;
  for (int64_t i = first_element(); i < count; i += element_step()) {
    const Position position(i, w.out, w.channels, w.last, width);
    const Plane in(position, w.in, w.channels, w.last), out(position, w.out, w.channels, w.last);
    const Window window(w, position.at);
    C result[width] = {};
    constexpr int at_once = kind == PoolKind::avg ? 4 : 1;  // averages are often of large windows
    each_in<at_once>(window.begin, window.end, [&](int d, int h, int v) {
      const auto values = read<T, width>(x, in.offset(in.index(d, h, v)));
      for (int k = 0; k < width; ++k) {
        const C value = load(values.element[k]);
        result[k] += kind == PoolKind::lp ? norm_term(value, w.norm) : value;
      }
    });
    Pack<T, width> stored;
    for (int k = 0; k < width; ++k) {
      if (kind == PoolKind::avg && window.divisor > 0) result[k] /= static_cast<C>(window.divisor);
      if (kind == PoolKind::lp) result[k] = norm_of(result[k], w.norm);
      stored.element[k] = store<T>(result[k]);
    }
    const int64_t target = out.offset(out.index(position.at[0], position.at[1], position.at[2]));
    *reinterpret_cast<Pack<T, width>*>(y + target) = stored;
  }
}

template <class T, int width, PoolKind kind>
__global__ void collect_shares(const T* dy, T* dx, PoolWindows w, int64_t count) {
  using C = compute_type<T>;
  for (int64_t i = first_element(); i < count; i += element_step()) {
    const Position position(i, w.in, w.channels, w.last, width);
    const Plane in(position, w.in, w.channels, w.last), out(position, w.out, w.channels, w.last);
    const Covering windows(w, position.at);
    C sum[width] = {};
    each_in(windows.begin, windows.end, [&](int d, int h, int v) {
      const int at[3] = {d, h, v};
      const Window window(w, at);
      const bool divide = kind == PoolKind::avg && window.divisor > 0;
      const auto gradient = read<T, width>(dy, out.offset(out.index(d, h, v)));
      for (int k = 0; k < width; ++k) {
        const C value = load(gradient.element[k]);
        sum[k] += divide ? value / static_cast<C>(window.divisor) : value;
      }
    });
    Pack<T, width> stored;
    for (int k = 0; k < width; ++k) stored.element[k] = store<T>(sum[k]);
    const int here = in.index(position.at[0], position.at[1], position.at[2]);
    *reinterpret_cast<Pack<T, width>*>(dx + in.offset(here)) = stored;
  }
}

// dx = dy / divisor at each of the `positions`, channels last: (images, positions, channels). Blocks of x × y threads;
// y threads for the same channels write every y-th position.
template <class T, int width>
__global__ void spread_shares(const T* dy, T* dx, int64_t images, int positions, int channels, int divisor) {
  const int channel = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x) * width;
  if (channel >= channels) return;
  for (int64_t image = blockIdx.y; image < images; image += gridDim.y) {
    auto share = read<T, width>(dy, image * channels + channel);
#pragma unroll
    for (T& element : share.element) element = store<T>(load(element) / static_cast<compute_type<T>>(divisor));
    T* const of_image = dx + image * positions * channels + channel;
#pragma unroll 4
    for (int at = static_cast<int>(threadIdx.y); at < positions; at += static_cast<int>(blockDim.y))
      *reinterpret_cast<Pack<T, width>*>(of_image + int64_t{at} * channels) = share;
  }
}

// For p of 2 and 3: a window whose norm is zero has no gradient.
template <class T, int width>
__global__ void collect_norms(const T* dy, const T* x, const T* y, T* dx, PoolWindows w, int64_t count) {
  using C = compute_type<T>;
  for (int64_t i = first_element(); i < count; i += element_step()) {
    const Position position(i, w.in, w.channels, w.last, width);
    const Plane in(position, w.in, w.channels, w.last), out(position, w.out, w.channels, w.last);
    const int64_t here = in.offset(in.index(position.at[0], position.at[1], position.at[2]));
    const auto own = read<T, width>(x, here);
    const Covering windows(w, position.at);
    C sum[width] = {};
    each_in(windows.begin, windows.end, [&](int d, int h, int v) {
      const int64_t offset = out.offset(out.index(d, h, v));
      const auto gradient = read<T, width>(dy, offset), norm = read<T, width>(y, offset);
      for (int k = 0; k < width; ++k) {
        const C of_window = load(norm.element[k]);
        if (of_window == C(0)) continue;
        const C share = load(own.element[k]) / of_window;
        sum[k] += load(gradient.element[k]) * (w.norm == 2 ? share : share * share);
      }
    });
    Pack<T, width> stored;
    for (int k = 0; k < width; ++k) stored.element[k] = store<T>(sum[k]);
    *reinterpret_cast<Pack<T, width>*>(dx + here) = stored;
  }
}

// ---- Building -------------------------------------------------------------------------------------------------------

// Of any kind but max.
template <class Function>
void with_kind(PoolKind kind, Function function) {
  if (kind == PoolKind::avg) return function(std::integral_constant<PoolKind, PoolKind::avg>{});
  if (kind == PoolKind::lp) return function(std::integral_constant<PoolKind, PoolKind::lp>{});
  function(std::integral_constant<PoolKind, PoolKind::sum>{});
}

// Calls function(integral_constant<width>) with as many channels as can be processed together.
template <class T, class Function>
void with_width(const PoolWindows& windows, bool aligned, Function function) {
  if (aligned && windows.fits_packs<T>())
    function(std::integral_constant<int, widest<T>>{});
  else
    function(std::integral_constant<int, 1>{});
}

// What a sum over the window is divided by.
int divisor_of(PoolKind kind, const Window& window) { return kind == PoolKind::avg ? std::max(window.divisor, 1) : 1; }

template <class T>
std::unique_ptr<Kernel> build_fold(const NodeView& node, const PoolWindows& windows, const FoldWindow<T>& fold) {
  const int64_t positions = windows.inputs() / windows.outputs();
  const FoldPlan plan(windows.last ? AxisView{windows.images, positions, windows.channels}
                                   : AxisView{windows.images * windows.channels, positions, 1});
  return make_step(node,
                   [plan, fold](const Args& args) {
                     queue_fold(stream_of(args), plan, args.in<T>(0), args.out<T>(), args.scratch, fold);
                   },
                   {.scratch_bytes = plan.scratch_bytes<typename FoldWindow<T>::Part>()});
}

template <class T>
std::unique_ptr<Kernel> build_forward(const NodeView& node) {
  const auto& p = node.as<Pooling>();
  const PoolingSize size = size_of(p, node.inputs[0].shape, node.outputs[0].shape);
  const PoolWindows windows(size, size.channels_last || node.inputs[0].layout == Layout::channels_last, p);
  const PoolKind kind = kind_of(p);
  if (const auto whole = whole_window(windows); whole && kind != PoolKind::max && windows.outputs() > 0)
    return build_fold<T>(node, windows, {divisor_of(kind, *whole), kind == PoolKind::lp ? windows.norm : 1});
  return make_step(node, [windows, kind, results = windows.outputs()](const Args& args) {
    if (results == 0) return;
    const T* const x = args.in<T>(0);
    T* const y = args.out<T>();
    if (kind == PoolKind::max) return queue_maxima(stream_of(args), dtype_of<T>(), windows, x, y, nullptr);
    with_width<T>(
        windows, aligned_for_packs(x) && aligned_for_packs(y), [&]<int width>(std::integral_constant<int, width>) {
          with_kind(kind, [&]<PoolKind chosen>(std::integral_constant<PoolKind, chosen>) {
            pool<T, width, chosen>
                <<<blocks_for(results / width), block_size, 0, stream_of(args)>>>(x, y, windows, results / width);
          });
        });
  });
}

template <class T, int width>
void queue_spread(cudaStream_t stream, const PoolWindows& windows, int divisor, const T* dy, T* dx) {
  const int positions = windows.in[0] * windows.in[1] * windows.in[2], packs = windows.channels / width;
  constexpr unsigned x = 32, y = block_size / x;
  const dim3 grid((static_cast<unsigned>(packs) + x - 1) / x,
                  static_cast<unsigned>(std::min<int64_t>(windows.images, 65535)));
  spread_shares<T, width>
      <<<grid, dim3(x, y), 0, stream>>>(dy, dx, windows.images, positions, windows.channels, divisor);
}

// x and y are null unless the gradient is that of a norm with a p above 1.
template <class T, int width>
void queue_backward(cudaStream_t stream, PoolKind kind, const PoolWindows& windows, const T* dy, const T* x, const T* y,
                    T* dx) {
  const int64_t inputs = windows.inputs() / width;
  const unsigned blocks = blocks_for(inputs);
  if (x) {
    collect_norms<T, width><<<blocks, block_size, 0, stream>>>(dy, x, y, dx, windows, inputs);
  } else if (const auto whole = whole_window(windows); whole && windows.last) {
    queue_spread<T, width>(stream, windows, divisor_of(kind, *whole), dy, dx);
  } else if (kind == PoolKind::avg) {
    collect_shares<T, width, PoolKind::avg><<<blocks, block_size, 0, stream>>>(dy, dx, windows, inputs);
  } else {
    collect_shares<T, width, PoolKind::sum><<<blocks, block_size, 0, stream>>>(dy, dx, windows, inputs);
  }
}

template <class T>
std::unique_ptr<Kernel> build_backward(const NodeView& node) {
  const auto& p = node.as<PoolingGrad>();
  const PoolingSize size = size_of(p, node.inputs[1].shape, node.inputs[0].shape);
  const PoolWindows windows(size, size.channels_last || node.outputs[0].layout == Layout::channels_last, p);
  const PoolKind kind = kind_of(p);
  if (kind == PoolKind::max)
    return make_step(node,
                     [windows](const Args& args) {
                       queue_maxima(stream_of(args), dtype_of<T>(), windows, args.in<T>(1), nullptr, args.scratch);
                       queue_max_gradient(stream_of(args), dtype_of<T>(), windows, args.in<T>(0), args.scratch,
                                          args.out<T>());
                     },
                     {.scratch_bytes = static_cast<size_t>(windows.outputs()) * max_index_bytes(windows)});
  return make_step(node, [windows, kind, is_norm = kind == PoolKind::lp && windows.norm > 1](const Args& args) {
    if (windows.inputs() == 0) return;
    const T *const dy = args.in<T>(0), *const x = is_norm ? args.in<T>(1) : nullptr;
    const T* const y = is_norm ? args.in<T>(2) : nullptr;
    T* const dx = args.out<T>();
    const bool aligned = aligned_for_packs(dy) && aligned_for_packs(x) && aligned_for_packs(y) && aligned_for_packs(dx);
    with_width<T>(windows, aligned, [&]<int width>(std::integral_constant<int, width>) {
      queue_backward<T, width>(stream_of(args), kind, windows, dy, x, y, dx);
    });
  });
}

template <class P>
std::string refuse(const NodeView& node) {
  const P& p = node.as<P>();
  if (!is_floating(node.outputs[0].dtype)) return "wants floating numbers";
  const Tensor& data = node.inputs[std::is_same_v<P, PoolingGrad> ? 1 : 0];
  const Shape& output = std::is_same_v<P, PoolingGrad> ? node.inputs[0].shape : node.outputs[0].shape;
  return refuse_windows(size_of(p, data.shape, output));
}

// The layout of the data decides, in backward as well: the layer that computed the data expects its gradient in that
// layout.
template <class P>
std::optional<PreferredLayouts> preferred_layouts(const NodeView& node) {
  if (node.inputs[std::is_same_v<P, PoolingGrad> ? 1 : 0].layout != Layout::channels_last) return std::nullopt;
  if (is_channels_last(node.as<P>().layout)) return std::nullopt;
  return PreferredLayouts{std::vector(node.inputs.size(), Layout::channels_last), {Layout::channels_last}};
}

}  // namespace

void add_pool(ImplementationTable& table) {
  table.add<Pooling>({"cuda", refuse<Pooling>,
                      [](const NodeView& node) {
                        return visit_floating(node.outputs[0].dtype,
                                              [&]<class T>(std::type_identity<T>) { return build_forward<T>(node); });
                      },
                      preferred_layouts<Pooling>});
  table.add<PoolingGrad>({"cuda", refuse<PoolingGrad>,
                          [](const NodeView& node) {
                            return visit_floating(node.outputs[0].dtype, [&]<class T>(std::type_identity<T>) {
                              return build_backward<T>(node);
                            });
                          },
                          preferred_layouts<PoolingGrad>});
}

}  // namespace symbind::cuda_backend
