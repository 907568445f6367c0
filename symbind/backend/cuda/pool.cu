// Pooling by a thread per result. Channels-last arrays are processed 16 bytes of neighbouring channels at a time. In
// the gradients each element of the data sums those of the windows that contain it, without atomic additions; for max
// pooling a first pass writes which element of each window is its maximum.
#include "symbind/ops/pool.h"

#include <limits>

#include "symbind/backend/cuda/channels.cuh"
#include "symbind/backend/cuda/device.h"
#include "symbind/backend/cuda/step.h"
#include "symbind/backend/pooling.h"
#include "symbind/ops/conv.h"
#include "symbind/passes/target.h"

namespace symbind::cuda_backend {
namespace {

// The extents for device code. `last`: are the channels last?
struct Windows {
  int channels;
  int in[3], out[3], kernel[3], stride[3], pad[3];
  bool last, count_padding;
  int norm;  // the p of a p-norm

  Windows(const PoolingSize& size, bool channels_last, const Pooling& params)
      : channels(static_cast<int>(size.channels)),
        last(channels_last),
        count_padding(size.count_padding),
        norm(static_cast<int>(params.p_value.value_or(1))) {
    for (size_t axis = 0; axis < 3; ++axis) {
      in[axis] = static_cast<int>(size.in[axis]);
      out[axis] = static_cast<int>(size.out[axis]);
      kernel[axis] = static_cast<int>(size.kernel[axis]);
      stride[axis] = static_cast<int>(size.stride[axis]);
      pad[axis] = static_cast<int>(size.pad[axis]);
    }
  }
  // Does a byte hold the number of an element in its window?
  bool has_few_taps() const { return double(kernel[0]) * kernel[1] * kernel[2] < 255; }
};

// The coordinates of an element of an array.
struct Position {
  int64_t image;
  int channel;
  int at[3];

  // Item `index` of an array with these extents; with `width` channels to an item where channels are last.
  __device__ Position(int64_t index, const int (&extent)[3], int channels, bool last, int width) {
    if (index >> 32)
      take_apart(index, extent, channels, last, width);
    else  // divisions of 64 bits are slow
      take_apart(static_cast<uint32_t>(index), extent, channels, last, width);
  }

 private:
  template <class Index>
  __device__ void take_apart(Index index, const int (&extent)[3], int channels, bool last, int width) {
    const auto take = [&](int among) {
      const Index rest = index / static_cast<Index>(among);
      const auto part = static_cast<int>(index - rest * static_cast<Index>(among));
      index = rest;
      return part;
    };
    if (last) channel = take(channels / width) * width;
    for (int axis = 2; axis >= 0; --axis) at[axis] = take(extent[axis]);
    if (!last) channel = take(channels);
    image = static_cast<int64_t>(index);
  }
};

// Where the elements of one image and channel are.
struct Plane {
  int64_t start;
  int step, extent1, extent2;

  __device__ Plane(const Position& position, const int (&extent)[3], int channels, bool last)
      : extent1(extent[1]), extent2(extent[2]) {
    const int64_t size = int64_t{extent[0]} * extent[1] * extent[2];
    start = last ? position.image * size * channels + position.channel
                 : (position.image * channels + position.channel) * size;
    step = last ? channels : 1;
  }
  __device__ int index(int d, int h, int w) const { return (d * extent1 + h) * extent2 + w; }
  __device__ int64_t offset(int index) const { return start + int64_t{index} * step; }
};

// The part of a window that is inside the data, and how many elements a mean divides by.
struct Window {
  int begin[3], end[3];
  int divisor = 1;

  __device__ Window(const Windows& w, const int (&at)[3]) {
    for (int axis = 0; axis < 3; ++axis) {
      const int start = at[axis] * w.stride[axis] - w.pad[axis];
      const int stop = min(start + w.kernel[axis], w.in[axis] + w.pad[axis]);
      begin[axis] = max(start, 0);
      end[axis] = min(stop, w.in[axis]);
      divisor *= w.count_padding ? stop - start : end[axis] - begin[axis];
    }
  }
};

// The windows that contain a position of the data, along each axis.
struct Covering {
  int begin[3], end[3];

  __device__ Covering(const Windows& w, const int (&at)[3]) {
    for (int axis = 0; axis < 3; ++axis) {
      const int reach = at[axis] + w.pad[axis];
      const int before = reach - w.kernel[axis] + 1;
      begin[axis] = before <= 0 ? 0 : (before + w.stride[axis] - 1) / w.stride[axis];
      end[axis] = min(reach / w.stride[axis] + 1, w.out[axis]);
    }
  }
};

// at_once: how many neighbours may be read before the first is used.
template <int at_once = 1, class Visit>
__device__ void each_in(const int (&begin)[3], const int (&end)[3], Visit visit) {
  for (int d = begin[0]; d < end[0]; ++d)
    for (int h = begin[1]; h < end[1]; ++h) {
#pragma unroll at_once
      for (int w = begin[2]; w < end[2]; ++w) visit(d, h, w);
    }
}

template <class T, int width>
__device__ Pack<T, width> read(const T* array, int64_t offset) {
  return *reinterpret_cast<const Pack<T, width>*>(array + offset);
}

// A term of a p-norm, and the norm of the terms' sum: with p = 3 of either sign, as in MXNet.
template <class C>
__device__ C norm_term(C value, int p) {
  return p == 1 ? value : p == 2 ? value * value : value * value * value;
}
template <class C>
__device__ C norm_of(C sum, int p) {
  return p == 1 ? sum : p == 2 ? libm::sqrt(sum) : libm::cbrt(sum);
}

template <class T, int width, PoolKind kind>
__global__ void pool(const T* x, T* y, Windows w, int64_t count) {
  using C = compute_type<T>;
  for (int64_t i = first_element(); i < count; i += element_step()) {
    const Position position(i, w.out, w.channels, w.last, width);
    const Plane in(position, w.in, w.channels, w.last), out(position, w.out, w.channels, w.last);
    const Window window(w, position.at);
    C result[width];
    for (int k = 0; k < width; ++k) result[k] = kind == PoolKind::max ? lowest<T>() : C(0);
    constexpr int at_once = kind == PoolKind::avg ? 4 : 1;  // averages are often of the whole image
    each_in<at_once>(window.begin, window.end, [&](int d, int h, int v) {
      const auto values = read<T, width>(x, in.offset(in.index(d, h, v)));
      for (int k = 0; k < width; ++k) {
        const C value = load(values.element[k]);
        if (kind == PoolKind::max)
          result[k] = value > result[k] ? value : result[k];
        else
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

// What identifies an element of the data among those of a window: its number in the window if a byte holds that, else
// its index in its plane.
template <class Tap>
__device__ Tap tap_of(const Windows& w, const Plane& in, const int (&window)[3], int d, int h, int v) {
  if (sizeof(Tap) > 1) return static_cast<Tap>(in.index(d, h, v));
  const int at[3] = {d, h, v};
  int tap = 0;
  for (int axis = 0; axis < 3; ++axis)
    tap = tap * w.kernel[axis] + at[axis] - (window[axis] * w.stride[axis] - w.pad[axis]);
  return static_cast<Tap>(tap);
}
template <class Tap>
inline constexpr Tap no_tap = std::numeric_limits<Tap>::max();

// For each window the first of its largest elements; no_tap for a window without elements.
template <class T, int width, class Tap>
__global__ void find_largest(const T* x, Tap* taps, Windows w, int64_t count) {
  using C = compute_type<T>;
  for (int64_t i = first_element(); i < count; i += element_step()) {
    const Position position(i, w.out, w.channels, w.last, width);
    const Plane in(position, w.in, w.channels, w.last), out(position, w.out, w.channels, w.last);
    const Window window(w, position.at);
    Pack<Tap, width> best_tap;
    C best[width];
    for (int k = 0; k < width; ++k) best_tap.element[k] = no_tap<Tap>;
    each_in(window.begin, window.end, [&](int d, int h, int v) {
      const auto values = read<T, width>(x, in.offset(in.index(d, h, v)));
      const Tap tap = tap_of<Tap>(w, in, position.at, d, h, v);
      for (int k = 0; k < width; ++k) {
        const C value = load(values.element[k]);
        if (best_tap.element[k] == no_tap<Tap> || value > best[k]) {
          best[k] = value;
          best_tap.element[k] = tap;
        }
      }
    });
    const int64_t target = out.offset(out.index(position.at[0], position.at[1], position.at[2]));
    *reinterpret_cast<Pack<Tap, width>*>(taps + target) = best_tap;
  }
}

template <class T, int width, class Tap>
__global__ void collect_largest(const T* dy, const Tap* taps, T* dx, Windows w, int64_t count) {
  using C = compute_type<T>;
  for (int64_t i = first_element(); i < count; i += element_step()) {
    const Position position(i, w.in, w.channels, w.last, width);
    const Plane in(position, w.in, w.channels, w.last), out(position, w.out, w.channels, w.last);
    const Covering windows(w, position.at);
    C sum[width] = {};
    each_in(windows.begin, windows.end, [&](int d, int h, int v) {
      const int window[3] = {d, h, v};
      const Tap here = tap_of<Tap>(w, in, window, position.at[0], position.at[1], position.at[2]);
      const int64_t offset = out.offset(out.index(d, h, v));
      const auto gradient = read<T, width>(dy, offset);
      const auto largest = read<Tap, width>(taps, offset);
      for (int k = 0; k < width; ++k)
        if (largest.element[k] == here) sum[k] += load(gradient.element[k]);
    });
    Pack<T, width> stored;
    for (int k = 0; k < width; ++k) stored.element[k] = store<T>(sum[k]);
    const int64_t target = in.offset(in.index(position.at[0], position.at[1], position.at[2]));
    *reinterpret_cast<Pack<T, width>*>(dx + target) = stored;
  }
}

template <class T, int width, PoolKind kind>
__global__ void collect_shares(const T* dy, T* dx, Windows w, int64_t count) {
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

// For p of 2 and 3: a window whose norm is zero has no gradient.
template <class T, int width>
__global__ void collect_norms(const T* dy, const T* x, const T* y, T* dx, Windows w, int64_t count) {
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

template <class Function>
void with_kind(PoolKind kind, Function function) {
  if (kind == PoolKind::max) return function(std::integral_constant<PoolKind, PoolKind::max>{});
  if (kind == PoolKind::avg) return function(std::integral_constant<PoolKind, PoolKind::avg>{});
  if (kind == PoolKind::lp) return function(std::integral_constant<PoolKind, PoolKind::lp>{});
  function(std::integral_constant<PoolKind, PoolKind::sum>{});
}

// Calls function(integral_constant<width>) with as many channels as can be processed together.
template <class T, class Function>
void with_width(const Windows& windows, bool aligned, Function function) {
  if (aligned && windows.last && windows.channels % widest<T> == 0)
    function(std::integral_constant<int, widest<T>>{});
  else
    function(std::integral_constant<int, 1>{});
}

template <class T>
std::unique_ptr<Kernel> build_forward(const NodeView& node) {
  const auto& p = node.as<Pooling>();
  const PoolingSize size = size_of(p, node.inputs[0].shape, node.outputs[0].shape);
  const Windows windows(size, size.channels_last || node.inputs[0].layout == Layout::channels_last, p);
  return make_step(node, [windows, kind = kind_of(p), results = node.outputs[0].shape.size()](const Args& args) {
    if (results == 0) return;
    const T* const x = args.in<T>(0);
    T* const y = args.out<T>();
    with_width<T>(
        windows, aligned_for_packs(x) && aligned_for_packs(y), [&]<int width>(std::integral_constant<int, width>) {
          with_kind(kind, [&]<PoolKind chosen>(std::integral_constant<PoolKind, chosen>) {
            pool<T, width, chosen>
                <<<blocks_for(results / width), block_size, 0, stream_of(args)>>>(x, y, windows, results / width);
          });
        });
  });
}

struct BackwardWork {
  PoolKind kind;
  bool is_norm;             // of a p above 1
  int64_t outputs, inputs;  // elements
};

template <class T, int width>
void queue_backward(const Args& args, const BackwardWork& work, const Windows& windows, const T* dy, const T* x,
                    const T* y, T* dx) {
  const cudaStream_t stream = stream_of(args);
  const int64_t inputs = work.inputs / width, outputs = work.outputs / width;
  const unsigned blocks = blocks_for(inputs);
  if (work.kind == PoolKind::max) {
    const auto queue = [&]<class Tap>(Tap* taps) {
      if (outputs > 0)
        find_largest<T, width><<<blocks_for(outputs), block_size, 0, stream>>>(x, taps, windows, outputs);
      collect_largest<T, width><<<blocks, block_size, 0, stream>>>(dy, taps, dx, windows, inputs);
    };
    if (windows.has_few_taps())
      queue(static_cast<uint8_t*>(args.scratch));
    else
      queue(static_cast<int32_t*>(args.scratch));
  } else if (work.is_norm) {
    collect_norms<T, width><<<blocks, block_size, 0, stream>>>(dy, x, y, dx, windows, inputs);
  } else if (work.kind == PoolKind::avg) {
    collect_shares<T, width, PoolKind::avg><<<blocks, block_size, 0, stream>>>(dy, dx, windows, inputs);
  } else {
    collect_shares<T, width, PoolKind::sum><<<blocks, block_size, 0, stream>>>(dy, dx, windows, inputs);
  }
}

template <class T>
std::unique_ptr<Kernel> build_backward(const NodeView& node) {
  const auto& p = node.as<PoolingGrad>();
  const PoolingSize size = size_of(p, node.inputs[1].shape, node.inputs[0].shape);
  const Windows windows(size, size.channels_last || node.outputs[0].layout == Layout::channels_last, p);
  const int64_t outputs = node.inputs[0].shape.size(), inputs = node.outputs[0].shape.size();
  const PoolKind kind = kind_of(p);
  const bool is_norm = kind == PoolKind::lp && windows.norm > 1;
  const auto run = [=](const Args& args) {
    if (inputs == 0) return;
    const T* const dy = args.in<T>(0);
    const T* const x = kind == PoolKind::max || is_norm ? args.in<T>(1) : nullptr;
    const T* const y = is_norm ? args.in<T>(2) : nullptr;
    T* const dx = args.out<T>();
    const bool aligned = aligned_for_packs(dy) && aligned_for_packs(x) && aligned_for_packs(y) && aligned_for_packs(dx);
    with_width<T>(windows, aligned, [&]<int width>(std::integral_constant<int, width>) {
      queue_backward<T, width>(args, {kind, is_norm, outputs, inputs}, windows, dy, x, y, dx);
    });
  };
  const size_t tap_bytes = windows.has_few_taps() ? sizeof(uint8_t) : sizeof(int32_t);
  return make_step(node, run, {.scratch_bytes = kind == PoolKind::max ? static_cast<size_t>(outputs) * tap_bytes : 0});
}

template <class P>
std::string refuse(const NodeView& node) {
  const P& p = node.as<P>();
  if (!is_floating(node.outputs[0].dtype)) return "wants floating numbers";
  const Tensor& data = node.inputs[std::is_same_v<P, PoolingGrad> ? 1 : 0];
  const Shape& output = std::is_same_v<P, PoolingGrad> ? node.inputs[0].shape : node.outputs[0].shape;
  const PoolingSize size = size_of(p, data.shape, output);
  constexpr int64_t most = (int64_t{1} << 30);
  for (size_t axis = 0; axis < 3; ++axis)
    if ((size.out[axis] + 1) * size.stride[axis] + size.kernel[axis] > most) return "windows that reach too far";
  return size.in_size() < most && size.out_size() < most ? "" : "too many elements in a channel";
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
