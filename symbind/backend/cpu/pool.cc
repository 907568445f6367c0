#include "symbind/ops/pool.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "symbind/backend/cpu/lane_sums.h"
#include "symbind/backend/cpu/loops.h"
#include "symbind/backend/cpu/plain.h"
#include "symbind/passes/target.h"

namespace symbind::cpu_backend {
namespace {

enum class Kind { max, avg, sum, lp };

Kind kind_of(const Pooling& params) {
  if (params.pool_type == "max") return Kind::max;
  if (params.pool_type == "avg") return Kind::avg;
  return params.pool_type == "sum" ? Kind::sum : Kind::lp;
}

template <class T>
compute_type<T> lowest() {
  if constexpr (std::is_same_v<T, float16>)
    return -65504.0f;
  else if constexpr (std::is_same_v<T, bfloat16>)
    return -3.38953139e38f;
  else
    return std::numeric_limits<T>::lowest();
}

// The part of one window that lies inside the input, and how many elements a mean divides by.
struct Window {
  std::array<int64_t, 3> begin, end;
  int64_t divisor = 1;
};

// The extent of a window along one axis.
struct Extent {
  int64_t begin, end;  // inside the input
  int64_t counted;     // elements that a mean counts
};
Extent extent_at(const PoolingSize& size, size_t axis, int64_t position) {
  const int64_t start = position * size.stride[axis] - size.pad[axis];
  const int64_t stop = std::min(start + size.kernel[axis], size.in[axis] + size.pad[axis]);
  const int64_t begin = std::max<int64_t>(start, 0), end = std::min(stop, size.in[axis]);
  return {begin, end, size.count_padding ? stop - start : end - begin};
}

Window window_at(const PoolingSize& size, int64_t d, int64_t h, int64_t w) {
  Window window;
  const std::array<int64_t, 3> position = {d, h, w};
  for (size_t axis = 0; axis < 3; ++axis) {
    const Extent extent = extent_at(size, axis, position[axis]);
    window.begin[axis] = extent.begin;
    window.end[axis] = extent.end;
    window.divisor *= extent.counted;
  }
  return window;
}

// Calls visit(index in a plane) for the elements of a window, in order.
template <class Visit>
void each_in(const PoolingSize& size, const Window& window, Visit visit) {
  for (int64_t d = window.begin[0]; d < window.end[0]; ++d)
    for (int64_t h = window.begin[1]; h < window.end[1]; ++h)
      for (int64_t w = window.begin[2]; w < window.end[2]; ++w) visit((d * size.in[1] + h) * size.in[2] + w);
}

// Calls visit(output index in a plane, window) for every window.
template <class Visit>
void each_window(const PoolingSize& size, Visit visit) {
  int64_t index = 0;
  for (int64_t d = 0; d < size.out[0]; ++d)
    for (int64_t h = 0; h < size.out[1]; ++h)
      for (int64_t w = 0; w < size.out[2]; ++w) visit(index++, window_at(size, d, h, w));
}

// Where the elements of one channel of one image lie: from start on, step apart.
struct Plane {
  int64_t start, step;
};
Plane plane_at(const PoolingSize& size, int64_t plane, int64_t extent) {
  if (!size.channels_last) return {plane * extent, 1};
  return {plane / size.channels * extent * size.channels + plane % size.channels, size.channels};
}

// ---- Rows of windows ------------------------------------------------------------------------------------------------
// The windows of one output row are computed together, kernel element by kernel element, so that neighbours fill
// vectors. For elements that lie side by side.

constexpr int64_t row_windows = 256;  // at a time

// Calls visit(first window, last window, index of the element that the first sees) for every kernel element, in order;
// windows [begin, end) of the output row (d, h) that see padding there are left out.
template <class Visit>
[[gnu::always_inline]] inline void each_kernel_element(const PoolingSize& size, int64_t d, int64_t h, int64_t begin,
                                                       int64_t end, const Visit& visit) {
  const int64_t stride = size.stride[2];
  for (int64_t i = 0; i < size.kernel[0]; ++i) {
    const int64_t z = d * size.stride[0] - size.pad[0] + i;
    if (z < 0 || z >= size.in[0]) continue;
    for (int64_t j = 0; j < size.kernel[1]; ++j) {
      const int64_t y = h * size.stride[1] - size.pad[1] + j;
      if (y < 0 || y >= size.in[1]) continue;
      for (int64_t k = 0; k < size.kernel[2]; ++k) {
        const int64_t shift = k - size.pad[2];
        const int64_t first = std::max(begin, shift < 0 ? (-shift + stride - 1) / stride : 0);
        const int64_t last = std::min(end, shift >= size.in[2] ? 0 : (size.in[2] - 1 - shift) / stride + 1);
        if (first < last) visit(first, last, (z * size.in[1] + y) * size.in[2] + first * stride + shift);
      }
    }
  }
}

// body(stride) with the stride as a constant where it is small, so that loops over it become vector code.
template <class Body>
[[gnu::always_inline]] inline void with_stride(int64_t stride, const Body& body) {
  if (stride == 1)
    body(std::integral_constant<int64_t, 1>{});
  else if (stride == 2)
    body(std::integral_constant<int64_t, 2>{});
  else if (stride == 3)
    body(std::integral_constant<int64_t, 3>{});
  else
    body(stride);
}

// Divides what belongs to the windows [begin, end) of the output row (d, h) by the elements that their means count.
template <class C>
[[gnu::always_inline]] inline void divide_row(const PoolingSize& size, int64_t d, int64_t h, int64_t begin, int64_t end,
                                              C* row) {
  const int64_t outer = extent_at(size, 0, d).counted * extent_at(size, 1, h).counted, stride = size.stride[2];
  // The windows [first, inside) have a whole kernel inside the input.
  const int64_t last_start = size.in[2] + size.pad[2] - size.kernel[2];
  const int64_t inside = last_start < 0 ? 0 : std::min(end, last_start / stride + 1);
  const int64_t first = std::min(std::max(begin, (size.pad[2] + stride - 1) / stride), std::max(begin, inside));
  const auto divide_each = [&](int64_t from, int64_t to) {
    for (int64_t w = from; w < to; ++w)
      if (const int64_t divisor = outer * extent_at(size, 2, w).counted; divisor > 0)
        row[w - begin] /= static_cast<C>(divisor);
  };
  divide_each(begin, first);
  const C whole = static_cast<C>(outer * size.kernel[2]);
  if (whole > C(0))
    for (int64_t w = first; w < inside; ++w) row[w - begin] /= whole;
  divide_each(std::max(first, inside), end);
}

template <class C>
void pool_rows(const PoolingSize& size, Kind kind, const C* x, C* y) {
  C row[row_windows];
  for (int64_t d = 0; d < size.out[0]; ++d)
    for (int64_t h = 0; h < size.out[1]; ++h)
      for (int64_t begin = 0; begin < size.out[2]; begin += row_windows) {
        const int64_t end = std::min(size.out[2], begin + row_windows);
        std::fill_n(row, end - begin, kind == Kind::max ? lowest<C>() : C(0));
        with_stride(size.stride[2], [&](auto stride) [[gnu::always_inline]] {
          each_kernel_element(size, d, h, begin, end, [&](int64_t first, int64_t last, int64_t at) {
            C* const to = row + (first - begin);
            const C* const from = x + at;
            if (kind == Kind::max)
              for (int64_t i = 0; i < last - first; ++i) to[i] = from[i * stride] > to[i] ? from[i * stride] : to[i];
            else
              for (int64_t i = 0; i < last - first; ++i) to[i] += from[i * stride];
          });
        });
        if (kind == Kind::avg) divide_row(size, d, h, begin, end, row);
        std::copy_n(row, end - begin, y + (d * size.out[1] + h) * size.out[2] + begin);
      }
}

// Adds to dx. A maximum's gradient goes to the first element that has it.
template <class C>
void unpool_rows(const PoolingSize& size, Kind kind, const C* dy, const C* x, C* dx) {
  C row[row_windows];
  int32_t places[row_windows];
  for (int64_t d = 0; d < size.out[0]; ++d)
    for (int64_t h = 0; h < size.out[1]; ++h)
      for (int64_t begin = 0; begin < size.out[2]; begin += row_windows) {
        const int64_t end = std::min(size.out[2], begin + row_windows);
        const C* const grads = dy + (d * size.out[1] + h) * size.out[2] + begin;
        if (kind == Kind::max) {
          std::fill_n(places, end - begin, -1);
          std::fill_n(row, end - begin, lowest<C>());
          with_stride(size.stride[2], [&](auto stride) [[gnu::always_inline]] {
            each_kernel_element(size, d, h, begin, end, [&](int64_t first, int64_t last, int64_t at) {
              C* const best = row + (first - begin);
              int32_t* const place = places + (first - begin);
              const C* const from = x + at;
              for (int64_t i = 0; i < last - first; ++i) {
                const bool is_new = (place[i] < 0) | (from[i * stride] > best[i]);
                best[i] = is_new ? from[i * stride] : best[i];
                place[i] = is_new ? static_cast<int32_t>(at + i * stride) : place[i];
              }
            });
          });
          for (int64_t i = 0; i < end - begin; ++i)
            if (places[i] >= 0) dx[places[i]] += grads[i];
          continue;
        }
        std::copy_n(grads, end - begin, row);
        if (kind == Kind::avg) divide_row(size, d, h, begin, end, row);
        with_stride(size.stride[2], [&](auto stride) [[gnu::always_inline]] {
          each_kernel_element(size, d, h, begin, end, [&](int64_t first, int64_t last, int64_t at) {
            const C* const from = row + (first - begin);
            C* const to = dx + at;
            for (int64_t i = 0; i < last - first; ++i) to[i * stride] += from[i];
          });
        });
      }
}

// Whether windows are computed by rows: elements side by side, indices that fit into vectors of their own.
template <class T>
bool goes_by_rows(const PoolingSize& size, Kind kind) {
  return std::is_same_v<T, compute_type<T>> && !size.channels_last && kind != Kind::lp &&
         size.in_size() < std::numeric_limits<int32_t>::max();
}

// ---- Windows one by one, for everything else ------------------------------------------------------------------------

template <class C>
C norm(C sum, int64_t p) {
  return p == 2 ? std::sqrt(sum) : p == 3 ? std::cbrt(sum) : sum;
}

template <class T>
void pool_plane(const PoolingSize& size, Kind kind, int64_t p, const T* x, int64_t x_step, T* y, int64_t y_step) {
  using C = compute_type<T>;
  each_window(size, [&](int64_t out, const Window& window) {
    C result = kind == Kind::max ? lowest<T>() : C(0);
    each_in(size, window, [&](int64_t in) {
      const C value = static_cast<C>(x[in * x_step]);
      if (kind == Kind::max)
        result = value > result ? value : result;
      else if (kind != Kind::lp || p == 1)
        result += value;
      else
        result += p == 2 ? value * value : value * value * value;
    });
    if (kind == Kind::avg && window.divisor > 0) result /= static_cast<C>(window.divisor);
    if (kind == Kind::lp) result = norm(result, p);
    y[out * y_step] = static_cast<T>(result);
  });
}

// Adds to dx, the gradient of one plane. x and y are null where the kind does not need them.
template <class T>
void unpool_plane(const PoolingSize& size, Kind kind, int64_t p, const T* dy, const T* x, int64_t x_step, const T* y,
                  int64_t y_step, compute_type<T>* dx) {
  using C = compute_type<T>;
  each_window(size, [&](int64_t out, const Window& window) {
    const C gradient = static_cast<C>(dy[out * y_step]);
    if (kind == Kind::max) {
      int64_t at = -1;
      C best = lowest<T>();
      each_in(size, window, [&](int64_t in) {
        const C value = static_cast<C>(x[in * x_step]);
        if (at < 0 || value > best) {
          best = value;
          at = in;
        }
      });
      if (at >= 0) dx[at] += gradient;
    } else if (kind == Kind::lp && p > 1) {
      const C value = static_cast<C>(y[out * y_step]);
      if (value == C(0)) return;
      each_in(size, window, [&](int64_t in) {
        const C share = static_cast<C>(x[in * x_step]) / value;
        dx[in] += gradient * (p == 2 ? share : share * share);
      });
    } else {
      const C share = kind == Kind::avg && window.divisor > 0 ? gradient / static_cast<C>(window.divisor) : gradient;
      each_in(size, window, [&](int64_t in) { dx[in] += share; });
    }
  });
}

int64_t plane_grain(const PoolingSize& size) {
  const int64_t window = size.kernel[0] * size.kernel[1] * size.kernel[2];
  return 32768 / (size.out_size() * window + size.in_size() + 1) + 1;
}

// One window that is the whole plane, its elements side by side: sums and maxima in lanes.
bool is_whole_plane(const PoolingSize& size, Kind kind) {
  if (size.channels_last || size.out_size() != 1 || kind == Kind::lp) return false;
  for (size_t axis = 0; axis < 3; ++axis)
    if (size.pad[axis] != 0 || size.kernel[axis] < size.in[axis]) return false;
  return true;
}

template <class T>
[[gnu::always_inline]] inline compute_type<T> largest_of(const T* x, int64_t count) {
  using C = compute_type<T>;
  C lanes[sum_lanes];
  for (C& lane : lanes) lane = lowest<T>();
  int64_t i = 0;
  for (; i + sum_lanes <= count; i += sum_lanes)
#pragma GCC unroll 16
    for (int64_t lane = 0; lane < sum_lanes; ++lane) {
      const C value = static_cast<C>(x[i + lane]);
      lanes[lane] = value > lanes[lane] ? value : lanes[lane];
    }
  C most = lanes[0];
  for (const C lane : lanes) most = lane > most ? lane : most;
  for (; i < count; ++i) most = static_cast<C>(x[i]) > most ? static_cast<C>(x[i]) : most;
  return most;
}

template <class T>
std::unique_ptr<Kernel> build_whole_planes(const PoolingSize& size, Kind kind) {
  using C = compute_type<T>;
  const int64_t count = size.in_size();
  const int64_t divisor = kind == Kind::avg ? window_at(size, 0, 0, 0).divisor : 1;
  return make_kernel([=](const Args& args) {
    for_elements(
        size.batch * size.channels,
        [=, x = args.in<T>(0), y = args.out<T>()](int64_t begin, int64_t end) {
          for (int64_t plane = begin; plane < end; ++plane) {
            const T* const from = x + plane * count;
            if (kind == Kind::max)
              y[plane] = static_cast<T>(largest_of(from, count));
            else
              y[plane] = static_cast<T>(
                  static_cast<C>(sum_in_lanes(count, [=](int64_t i) { return static_cast<C>(from[i]); }) /
                                 static_cast<double>(divisor)));
          }
        },
        element_grain / (count + 1) + 1);
  });
}

template <class T>
std::unique_ptr<Kernel> build_forward(const NodeView& node) {
  const auto& params = node.as<Pooling>();
  const PoolingSize size = size_of(params, node.inputs[0].shape, node.outputs[0].shape);
  if (is_whole_plane(size, kind_of(params))) return build_whole_planes<T>(size, kind_of(params));
  if constexpr (std::is_same_v<T, compute_type<T>>)
    if (goes_by_rows<T>(size, kind_of(params)))
      return make_kernel([size, kind = kind_of(params)](const Args& args) {
        for_elements(
            size.batch * size.channels,
            [=, x = args.in<T>(0), y = args.out<T>()](int64_t begin, int64_t end) {
              for (int64_t plane = begin; plane < end; ++plane)
                pool_rows(size, kind, x + plane * size.in_size(), y + plane * size.out_size());
            },
            plane_grain(size));
      });
  return make_kernel([size, kind = kind_of(params), p = params.p_value.value_or(1)](const Args& args) {
    parallel_for(size.batch * size.channels, plane_grain(size), [&](int64_t begin, int64_t end) {
      for (int64_t plane = begin; plane < end; ++plane) {
        const Plane in = plane_at(size, plane, size.in_size()), out = plane_at(size, plane, size.out_size());
        pool_plane(size, kind, p, args.in<T>(0) + in.start, in.step, args.out<T>() + out.start, out.step);
      }
    });
  });
}

template <class T>
std::unique_ptr<Kernel> build_backward(const NodeView& node) {
  const auto& params = node.as<PoolingGrad>();
  const PoolingSize size = size_of(params, node.inputs[1].shape, node.inputs[0].shape);
  const bool reads_data = node.inputs.size() > 2;
  if (const Kind kind = kind_of(params); is_whole_plane(size, kind) && kind != Kind::max) {
    const auto share = static_cast<compute_type<T>>(kind == Kind::avg ? window_at(size, 0, 0, 0).divisor : 1);
    return make_kernel([size, share](const Args& args) {
      const int64_t count = size.in_size();
      for_elements(
          size.batch * size.channels,
          [=, dy = args.in<T>(0), dx = args.out<T>()](int64_t begin, int64_t end) {
            for (int64_t plane = begin; plane < end; ++plane)
              std::fill_n(dx + plane * count, count, static_cast<T>(static_cast<compute_type<T>>(dy[plane]) / share));
          },
          element_grain / (count + 1) + 1);
    });
  }
  if constexpr (std::is_same_v<T, compute_type<T>>)
    if (goes_by_rows<T>(size, kind_of(params)))
      return make_kernel([size, reads_data, kind = kind_of(params)](const Args& args) {
        for_elements(
            size.batch * size.channels,
            [=, dy = args.in<T>(0), x = reads_data ? args.in<T>(1) : nullptr, dx = args.out<T>()](int64_t begin,
                                                                                                  int64_t end) {
              for (int64_t plane = begin; plane < end; ++plane) {
                std::fill_n(dx + plane * size.in_size(), size.in_size(), T(0));
                unpool_rows(size, kind, dy + plane * size.out_size(), x ? x + plane * size.in_size() : nullptr,
                            dx + plane * size.in_size());
              }
            },
            plane_grain(size));
      });
  return make_kernel([size, reads_data, kind = kind_of(params), p = params.p_value.value_or(1)](const Args& args) {
    using C = compute_type<T>;
    parallel_for(size.batch * size.channels, plane_grain(size), [&](int64_t begin, int64_t end) {
      std::vector<C> gradient(static_cast<size_t>(size.in_size()));
      for (int64_t plane = begin; plane < end; ++plane) {
        const Plane in = plane_at(size, plane, size.in_size()), out = plane_at(size, plane, size.out_size());
        std::fill(gradient.begin(), gradient.end(), C(0));
        unpool_plane(size, kind, p, args.in<T>(0) + out.start, reads_data ? args.in<T>(1) + in.start : nullptr, in.step,
                     reads_data ? args.in<T>(2) + out.start : nullptr, out.step, gradient.data());
        T* dx = args.out<T>() + in.start;
        for (int64_t i = 0; i < size.in_size(); ++i) dx[i * in.step] = static_cast<T>(gradient[static_cast<size_t>(i)]);
      }
    });
  });
}

}  // namespace

void add_pool(ImplementationTable& table) {
  add_plain<Pooling>(table, [](const NodeView& node) {
    return visit_floating(node.outputs[0].dtype,
                          [&](auto type) { return build_forward<typename decltype(type)::type>(node); });
  });
  add_plain<PoolingGrad>(table, [](const NodeView& node) {
    return visit_floating(node.outputs[0].dtype,
                          [&](auto type) { return build_backward<typename decltype(type)::type>(node); });
  });
}

}  // namespace symbind::cpu_backend
