#include "symbind/ops/pool.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "symbind/backend/cpu/families.h"
#include "symbind/backend/cpu/parallel.h"
#include "symbind/backend/cpu/plain.h"

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

Window window_at(const PoolingSize& size, int64_t d, int64_t h, int64_t w) {
  Window window;
  const std::array<int64_t, 3> position = {d, h, w};
  for (size_t axis = 0; axis < 3; ++axis) {
    const int64_t start = position[axis] * size.stride[axis] - size.pad[axis];
    const int64_t stop = std::min(start + size.kernel[axis], size.in[axis] + size.pad[axis]);
    window.begin[axis] = std::max<int64_t>(start, 0);
    window.end[axis] = std::min(stop, size.in[axis]);
    window.divisor *= size.count_padding ? stop - start : window.end[axis] - window.begin[axis];
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

template <class T>
std::unique_ptr<Kernel> build_forward(const NodeView& node) {
  const auto& params = node.as<Pooling>();
  const PoolingSize size = size_of(params, node.inputs[0].shape, node.outputs[0].shape);
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
