#include "symbind/backend/cpu/pool.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "symbind/backend/cpu/half.h"
#include "symbind/backend/cpu/loops.h"
#include "symbind/backend/cpu/plain.h"
#include "symbind/passes/target.h"

namespace symbind::cpu_backend {
namespace {

// The part of one window that is inside the input, and how many elements a mean divides by.
struct Window {
  std::array<int64_t, 3> begin, end;
  int64_t divisor = 1;
};

Window window_at(const PoolingSize& size, int64_t d, int64_t h, int64_t w) {
  Window window;
  const std::array<int64_t, 3> position = {d, h, w};
  for (size_t axis = 0; axis < 3; ++axis) {
    const PoolExtent extent = extent_at(size, axis, position[axis]);
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

// ---- Rows of windows ------------------------------------------------------------------------------------------------
// The windows of one output row are computed together, kernel element by kernel element, so that neighbouring windows
// fill vectors.

constexpr int64_t row_windows = 256;  // at a time

// Calls visit(first window, last window, index of the element that the first reads) for every kernel element, in order;
// windows [begin, end) of the output row (d, h) that read padding there are left out.
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

// Divides the sums of the windows [begin, end) of the output row (d, h) by the number of elements in their means.
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
void pool_rows(const PoolingSize& size, PoolKind kind, C least, const C* x, C* y) {
  C row[row_windows];
  for (int64_t d = 0; d < size.out[0]; ++d)
    for (int64_t h = 0; h < size.out[1]; ++h)
      for (int64_t begin = 0; begin < size.out[2]; begin += row_windows) {
        const int64_t end = std::min(size.out[2], begin + row_windows);
        std::fill_n(row, end - begin, kind == PoolKind::max ? least : C(0));
        with_stride(size.stride[2], [&](auto stride) [[gnu::always_inline]] {
          each_kernel_element(size, d, h, begin, end, [&](int64_t first, int64_t last, int64_t at) {
            C* const to = row + (first - begin);
            const C* const from = x + at;
            if (kind == PoolKind::max)
              for (int64_t i = 0; i < last - first; ++i) to[i] = from[i * stride] > to[i] ? from[i * stride] : to[i];
            else
              for (int64_t i = 0; i < last - first; ++i) to[i] += from[i * stride];
          });
        });
        if (kind == PoolKind::avg) divide_row(size, d, h, begin, end, row);
        std::copy_n(row, end - begin, y + (d * size.out[1] + h) * size.out[2] + begin);
      }
}

// Adds to dx. A maximum's gradient goes to the first element that has it.
template <class C>
void unpool_rows(const PoolingSize& size, PoolKind kind, const C* dy, const C* x, C* dx) {
  C row[row_windows];
  int32_t indices[row_windows];
  for (int64_t d = 0; d < size.out[0]; ++d)
    for (int64_t h = 0; h < size.out[1]; ++h)
      for (int64_t begin = 0; begin < size.out[2]; begin += row_windows) {
        const int64_t end = std::min(size.out[2], begin + row_windows);
        const C* const grads = dy + (d * size.out[1] + h) * size.out[2] + begin;
        if (kind == PoolKind::max) {
          std::fill_n(indices, end - begin, -1);
          std::fill_n(row, end - begin, lowest<C>());
          with_stride(size.stride[2], [&](auto stride) [[gnu::always_inline]] {
            each_kernel_element(size, d, h, begin, end, [&](int64_t first, int64_t last, int64_t at) {
              C* const best = row + (first - begin);
              int32_t* const index = indices + (first - begin);
              const C* const from = x + at;
              for (int64_t i = 0; i < last - first; ++i) {
                const bool is_new = (index[i] < 0) | (from[i * stride] > best[i]);
                best[i] = is_new ? from[i * stride] : best[i];
                index[i] = is_new ? static_cast<int32_t>(at + i * stride) : index[i];
              }
            });
          });
          for (int64_t i = 0; i < end - begin; ++i)
            if (indices[i] >= 0) dx[indices[i]] += grads[i];
          continue;
        }
        std::copy_n(grads, end - begin, row);
        if (kind == PoolKind::avg) divide_row(size, d, h, begin, end, row);
        with_stride(size.stride[2], [&](auto stride) [[gnu::always_inline]] {
          each_kernel_element(size, d, h, begin, end, [&](int64_t first, int64_t last, int64_t at) {
            const C* const from = row + (first - begin);
            C* const to = dx + at;
            for (int64_t i = 0; i < last - first; ++i) to[i * stride] += from[i];
          });
        });
      }
}

// ---- Windows one by one, for everything else ------------------------------------------------------------------------

template <class C>
C norm(C sum, int64_t p) {
  return p == 2 ? std::sqrt(sum) : p == 3 ? std::cbrt(sum) : sum;
}

template <class C>
void pool_windows(const PoolingSize& size, PoolKind kind, int64_t p, C least, const C* x, C* y) {
  each_window(size, [&](int64_t out, const Window& window) {
    C result = kind == PoolKind::max ? least : C(0);
    each_in(size, window, [&](int64_t in) {
      if (kind == PoolKind::max)
        result = x[in] > result ? x[in] : result;
      else if (kind != PoolKind::lp || p == 1)
        result += x[in];
      else
        result += p == 2 ? x[in] * x[in] : x[in] * x[in] * x[in];
    });
    if (kind == PoolKind::avg && window.divisor > 0) result /= static_cast<C>(window.divisor);
    y[out] = kind == PoolKind::lp ? norm(result, p) : result;
  });
}

// Adds to dx. x and y are null where the kind does not need them.
template <class C>
void unpool_windows(const PoolingSize& size, PoolKind kind, int64_t p, const C* dy, const C* x, const C* y, C* dx) {
  each_window(size, [&](int64_t out, const Window& window) {
    const C gradient = dy[out];
    if (kind == PoolKind::max) {
      int64_t at = -1;
      each_in(size, window, [&](int64_t in) {
        if (at < 0 || x[in] > x[at]) at = in;
      });
      if (at >= 0) dx[at] += gradient;
    } else if (kind == PoolKind::lp && p > 1) {
      if (y[out] == C(0)) return;
      each_in(size, window, [&](int64_t in) {
        const C share = x[in] / y[out];
        dx[in] += gradient * (p == 2 ? share : share * share);
      });
    } else {
      const C share =
          kind == PoolKind::avg && window.divisor > 0 ? gradient / static_cast<C>(window.divisor) : gradient;
      each_in(size, window, [&](int64_t in) { dx[in] += share; });
    }
  });
}

int64_t plane_grain(const PoolingSize& size) {
  const int64_t window = size.kernel[0] * size.kernel[1] * size.kernel[2];
  return 32768 / (size.out_size() * window + size.in_size() + 1) + 1;
}

// ---- Planes ---------------------------------------------------------------------------------------------------------

// The planes of an array, which has one for each channel of each image, as contiguous numbers of the type they are
// computed in: copied where they are not.
template <class T>
class Planes {
 public:
  using C = compute_type<T>;
  Planes(const PoolingSize& size, int64_t count)
      : channels_(size.channels_last ? size.channels : 1),
        count_(count),
        copies_(size.channels_last || !std::is_same_v<T, C>),
        copy_(static_cast<size_t>(copies_ ? count : 0)) {}

  const C* read(const T* array, int64_t plane) {
    if (!array) return nullptr;
    if (!copies_) return reinterpret_cast<const C*>(array + start(plane));
    const T* const from = array + start(plane);
    for (int64_t i = 0; i < count_; ++i) copy_[static_cast<size_t>(i)] = widened(from[i * channels_]);
    return copy_.data();
  }
  // Where to write a plane, and the function to call after that.
  C* to_write(T* array, int64_t plane) { return copies_ ? copy_.data() : reinterpret_cast<C*>(array + start(plane)); }
  void written(T* array, int64_t plane) const {
    if (!copies_) return;
    T* const to = array + start(plane);
    for (int64_t i = 0; i < count_; ++i) to[i * channels_] = narrowed<T>(copy_[static_cast<size_t>(i)]);
  }

 private:
  int64_t start(int64_t plane) const { return plane / channels_ * count_ * channels_ + plane % channels_; }

  int64_t channels_, count_;  // the elements of a plane are channels_ apart
  bool copies_;
  std::vector<C> copy_;
};

// Are windows computed by rows? Indices must fit into vectors.
bool goes_by_rows(const PoolingSize& size, PoolKind kind) {
  return kind != PoolKind::lp && size.in_size() < std::numeric_limits<int32_t>::max();
}

template <class T>
std::unique_ptr<Kernel> build_planes(const PoolingSize& size, PoolKind kind, int64_t p) {
  return make_kernel([=, by_rows = goes_by_rows(size, kind)](const Args& args) {
    for_elements(
        size.batch * size.channels,
        [=, all_x = args.in<T>(0), all_y = args.out<T>()](int64_t begin, int64_t end) {
          Planes<T> x_planes(size, size.in_size()), y_planes(size, size.out_size());
          for (int64_t plane = begin; plane < end; ++plane) {
            const auto* const x = x_planes.read(all_x, plane);
            auto* const y = y_planes.to_write(all_y, plane);
            if (by_rows)
              pool_rows(size, kind, lowest<T>(), x, y);
            else
              pool_windows(size, kind, p, lowest<T>(), x, y);
            y_planes.written(all_y, plane);
          }
        },
        plane_grain(size));
  });
}

template <class T>
std::unique_ptr<Kernel> build_planes_grad(const PoolingSize& size, PoolKind kind, int64_t p) {
  const bool reads_data = kind == PoolKind::max || kind == PoolKind::lp;
  return make_kernel([=, by_rows = goes_by_rows(size, kind)](const Args& args) {
    for_elements(
        size.batch * size.channels,
        [=, all_dy = args.in<T>(0), all_x = reads_data ? args.in<T>(1) : nullptr,
         all_y = reads_data ? args.in<T>(2) : nullptr, all_dx = args.out<T>()](int64_t begin, int64_t end) {
          Planes<T> dy_planes(size, size.out_size()), y_planes(size, size.out_size());
          Planes<T> x_planes(size, size.in_size()), dx_planes(size, size.in_size());
          for (int64_t plane = begin; plane < end; ++plane) {
            const auto *const dy = dy_planes.read(all_dy, plane), *const x = x_planes.read(all_x, plane);
            auto* const dx = dx_planes.to_write(all_dx, plane);
            std::fill_n(dx, size.in_size(), compute_type<T>(0));
            if (by_rows)
              unpool_rows(size, kind, dy, x, dx);
            else
              unpool_windows(size, kind, p, dy, x, y_planes.read(all_y, plane), dx);
            dx_planes.written(all_dx, plane);
          }
        },
        plane_grain(size));
  });
}

template <class T>
std::unique_ptr<Kernel> build_forward(const NodeView& node) {
  const auto& params = node.as<Pooling>();
  const PoolingSize size = size_of(params, node.inputs[0].shape, node.outputs[0].shape);
  const PoolKind kind = kind_of(params);
  if (is_whole_plane(size, kind)) return build_whole_planes<T>(size, kind);
  if constexpr (!std::is_same_v<T, double>)
    if (suits_lanes(size, kind, dtype_of<T>())) return build_pool_lanes<T>(size, kind);
  return build_planes<T>(size, kind, params.p_value.value_or(1));
}

template <class T>
std::unique_ptr<Kernel> build_backward(const NodeView& node) {
  const auto& params = node.as<PoolingGrad>();
  const PoolingSize size = size_of(params, node.inputs[1].shape, node.inputs[0].shape);
  const PoolKind kind = kind_of(params);
  if (is_whole_plane(size, kind)) return build_whole_planes_grad<T>(size, kind);
  if constexpr (!std::is_same_v<T, double>)
    if (suits_lanes_grad(size, kind, dtype_of<T>())) return build_pool_lanes_grad<T>(size, kind);
  return build_planes_grad<T>(size, kind, params.p_value.value_or(1));
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
