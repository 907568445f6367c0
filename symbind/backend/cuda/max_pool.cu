// Each element of the data sums the gradients of the windows whose maximum it is, in the order of the windows and
// without atomic additions. For most networks' windows, 2×2 and 3×3 with the channels last, there are kernels that read
// everything a thread needs before they use the first of it: these are limited by memory bandwidth alone.
#include "symbind/backend/cuda/max_pool.h"

#include <limits>

#include "symbind/backend/cuda/pool_windows.cuh"
#include "symbind/ops/pool_indices.h"

namespace symbind::cuda_backend {
namespace {

// ---- Any windows ----------------------------------------------------------------------------------------------------

// What identifies an element of the data among those of a window: its index in the window if a byte holds that, else
// its index in its plane.
template <class Index>
__device__ Index index_of(const PoolWindows& w, const Plane& in, const int (&window)[3], int d, int h, int v) {
  if (sizeof(Index) > 1) return static_cast<Index>(in.index(d, h, v));
  const int at[3] = {d, h, v};
  int index = 0;
  for (int axis = 0; axis < 3; ++axis)
    index = index * w.kernel[axis] + at[axis] - (window[axis] * w.stride[axis] - w.pad[axis]);
  return static_cast<Index>(index);
}
template <class Index>
inline constexpr Index no_index = std::numeric_limits<Index>::max();
static_assert(no_index<uint8_t> == no_pooling_index);

// A maximum ignores NaN; its index is that of the first element if that is NaN.
template <class T, int width, class Index>
__global__ void find_maxima(const T* x, T* y, Index* indices, PoolWindows w, int64_t count) {
  using C = compute_type<T>;
  for (int64_t i = first_element(); i < count; i += element_step()) {
    const Position position(i, w.out, w.channels, w.last, width);
    const Plane in(position, w.in, w.channels, w.last), out(position, w.out, w.channels, w.last);
    const Window window(w, position.at);
    Pack<Index, width> index;
    C largest[width], compared[width];
    for (int k = 0; k < width; ++k) {
      largest[k] = lowest<T>();
      index.element[k] = no_index<Index>;
    }
    each_in(window.begin, window.end, [&](int d, int h, int v) {
      const auto values = read<T, width>(x, in.offset(in.index(d, h, v)));
      const Index here = index_of<Index>(w, in, position.at, d, h, v);
      for (int k = 0; k < width; ++k) {
        const C value = load(values.element[k]);
        largest[k] = value > largest[k] ? value : largest[k];
        if (index.element[k] == no_index<Index> || value > compared[k]) {
          compared[k] = value;
          index.element[k] = here;
        }
      }
    });
    const int64_t target = out.offset(out.index(position.at[0], position.at[1], position.at[2]));
    if (indices) *reinterpret_cast<Pack<Index, width>*>(indices + target) = index;
    if (!y) continue;
    Pack<T, width> stored;
    for (int k = 0; k < width; ++k) stored.element[k] = store<T>(largest[k]);
    *reinterpret_cast<Pack<T, width>*>(y + target) = stored;
  }
}

template <class T, int width, class Index>
__global__ void collect(const T* dy, const Index* indices, T* dx, PoolWindows w, int64_t count) {
  using C = compute_type<T>;
  for (int64_t i = first_element(); i < count; i += element_step()) {
    const Position position(i, w.in, w.channels, w.last, width);
    const Plane in(position, w.in, w.channels, w.last), out(position, w.out, w.channels, w.last);
    const Covering windows(w, position.at);
    C sum[width] = {};
    each_in(windows.begin, windows.end, [&](int d, int h, int v) {
      const int window[3] = {d, h, v};
      const Index here = index_of<Index>(w, in, window, position.at[0], position.at[1], position.at[2]);
      const int64_t offset = out.offset(out.index(d, h, v));
      const auto gradient = read<T, width>(dy, offset);
      const auto largest = read<Index, width>(indices, offset);
      for (int k = 0; k < width; ++k)
        if (largest.element[k] == here) sum[k] += load(gradient.element[k]);
    });
    Pack<T, width> stored;
    for (int k = 0; k < width; ++k) stored.element[k] = store<T>(sum[k]);
    const int64_t target = in.offset(in.index(position.at[0], position.at[1], position.at[2]));
    *reinterpret_cast<Pack<T, width>*>(dx + target) = stored;
  }
}

// ---- Square windows of known extent ---------------------------------------------------------------------------------

// The extent of windows that are squares over the last two axes, and one element along the first; else 0.
int square_extent(const PoolWindows& w) {
  const bool flat = w.kernel[0] == 1 && w.stride[0] == 1 && w.pad[0] == 0;
  return flat && w.kernel[1] == w.kernel[2] ? w.kernel[1] : 0;
}

// Does every window have an element inside the data?
bool has_no_empty_windows(const PoolWindows& w) {
  for (int axis = 0; axis < 3; ++axis)
    if ((w.out[axis] - 1) * w.stride[axis] - w.pad[axis] >= w.in[axis]) return false;
  return true;
}

// As find_maxima. In place of an element outside of the data the nearest one of the window is read, which is there
// already and changes nothing: only a larger one replaces another.
template <class T, int extent, bool with_maxima, bool with_indices>
__global__ void find_square_maxima(const T* x, T* y, uint8_t* indices, PoolWindows w, int64_t count) {
  using C = compute_type<T>;
  constexpr int width = widest<T>;
  for (int64_t i = first_element(); i < count; i += element_step()) {
    const Position position(i, w.out, w.channels, true, width);
    const Plane in(position, w.in, w.channels, true), out(position, w.out, w.channels, true);
    const int top = position.at[1] * w.stride[1] - w.pad[1], left = position.at[2] * w.stride[2] - w.pad[2];
    int row[extent], column[extent];
#pragma unroll
    for (int k = 0; k < extent; ++k) {
      row[k] = min(max(top + k, 0), w.in[1] - 1);
      column[k] = min(max(left + k, 0), w.in[2] - 1);
    }
    Pack<T, width> values[extent][extent];
#pragma unroll
    for (int h = 0; h < extent; ++h)
#pragma unroll
      for (int v = 0; v < extent; ++v)
        values[h][v] = read<T, width>(x, in.offset(in.index(position.at[0], row[h], column[v])));
    Pack<uint8_t, width> index;
    Pack<T, width> stored;
    C compared[width];
    bool starts_with_nan = false;
#pragma unroll
    for (int k = 0; k < width; ++k) {
      C most = load(values[0][0].element[k]);
      starts_with_nan |= most != most;
      int at = (row[0] - top) * extent + column[0] - left;
#pragma unroll
      for (int tap = 1; tap < extent * extent; ++tap) {
        const int h = tap / extent, v = tap % extent;
        const C value = load(values[h][v].element[k]);
        if (value > most) {
          most = value;
          at = (row[h] - top) * extent + column[v] - left;
        }
      }
      index.element[k] = static_cast<uint8_t>(at);
      compared[k] = most;
    }
    const int64_t target = out.offset(out.index(position.at[0], position.at[1], position.at[2]));
    if constexpr (with_indices) *reinterpret_cast<Pack<uint8_t, width>*>(indices + target) = index;
    if constexpr (with_maxima) {
#pragma unroll
      for (int k = 0; k < width; ++k)
        stored.element[k] = store<T>(compared[k] > lowest<T>() ? compared[k] : lowest<T>());
      if (starts_with_nan) {
#pragma unroll
        for (int k = 0; k < width; ++k) {
          C largest = lowest<T>();
#pragma unroll
          for (int tap = 0; tap < extent * extent; ++tap) {
            const C value = load(values[tap / extent][tap % extent].element[k]);
            largest = value > largest ? value : largest;
          }
          stored.element[k] = store<T>(largest);
        }
      }
      *reinterpret_cast<Pack<T, width>*>(y + target) = stored;
    }
  }
}

// Along an axis with stride 2 two neighbouring elements, the first at an even coordinate, are in two windows at most.
// Element `element` of the two has this index in window `window` of the two; outside of [0, extent) it is not in it.
template <int extent, bool is_odd>
constexpr int index_along_axis(int element, int window) {
  return extent - (is_odd ? 2 : 1) + element - 2 * window;
}
// is_odd: is pad - extent + 1, twice the distance from a pair to its first window, an odd number?
template <int extent>
constexpr bool is_odd_pad(int pad) {
  return (pad + extent) % 2 == 0;
}
// How many windows a pair is in.
template <int extent, bool is_odd>
inline constexpr int windows_of_pair = extent == 2 && is_odd ? 1 : 2;

// As collect(), for stride 2 and two by two elements per thread: each gradient is read once for the four of them.
template <class T, int extent, bool is_odd>
__global__ void collect_pairs(const T* dy, const uint8_t* indices, T* dx, PoolWindows w, int64_t count) {
  using C = compute_type<T>;
  constexpr int width = widest<T>, windows = windows_of_pair<extent, is_odd>;
  const int pairs[3] = {w.in[0], (w.in[1] + 1) / 2, (w.in[2] + 1) / 2};
  for (int64_t i = first_element(); i < count; i += element_step()) {
    const Position position(i, pairs, w.channels, true, width);
    const Plane in(position, w.in, w.channels, true), out(position, w.out, w.channels, true);
    const int top = position.at[1] + (w.pad[1] - extent + 1 + is_odd) / 2;
    const int left = position.at[2] + (w.pad[2] - extent + 1 + is_odd) / 2;
    Pack<T, width> gradient[windows][windows];
    Pack<uint8_t, width> largest[windows][windows];
#pragma unroll
    for (int a = 0; a < windows; ++a)
#pragma unroll
      for (int b = 0; b < windows; ++b) {
        const int h = top + a, v = left + b;
        if (h >= 0 && h < w.out[1] && v >= 0 && v < w.out[2]) {
          const int64_t offset = out.offset(out.index(position.at[0], h, v));
          gradient[a][b] = read<T, width>(dy, offset);
          largest[a][b] = read<uint8_t, width>(indices, offset);
        } else {
          for (int k = 0; k < width; ++k) largest[a][b].element[k] = no_pooling_index;
        }
      }
#pragma unroll
    for (int element = 0; element < 4; ++element) {
      const int h = element / 2, v = element % 2;
      const int row = 2 * position.at[1] + h, column = 2 * position.at[2] + v;
      if (row >= w.in[1] || column >= w.in[2]) continue;
      Pack<T, width> stored;
#pragma unroll
      for (int k = 0; k < width; ++k) {
        C sum = 0;
#pragma unroll
        for (int a = 0; a < windows; ++a)
#pragma unroll
          for (int b = 0; b < windows; ++b) {
            const int along_h = index_along_axis<extent, is_odd>(h, a),
                      along_v = index_along_axis<extent, is_odd>(v, b);
            if (along_h < 0 || along_h >= extent || along_v < 0 || along_v >= extent) continue;
            if (largest[a][b].element[k] == along_h * extent + along_v) sum += load(gradient[a][b].element[k]);
          }
        stored.element[k] = store<T>(sum);
      }
      const int64_t target = in.offset(in.index(position.at[0], row, column));
      *reinterpret_cast<Pack<T, width>*>(dx + target) = stored;
    }
  }
}

// ---- Queueing -------------------------------------------------------------------------------------------------------

template <class T, int extent>
void queue_square_maxima(cudaStream_t stream, const PoolWindows& windows, const T* x, T* y, uint8_t* indices) {
  const int64_t count = windows.outputs() / widest<T>;
  const auto kernel = !indices ? find_square_maxima<T, extent, true, false>
                      : !y     ? find_square_maxima<T, extent, false, true>
                               : find_square_maxima<T, extent, true, true>;
  kernel<<<blocks_for(count), block_size, 0, stream>>>(x, y, indices, windows, count);
}

template <class T, class Index>
void queue_any_maxima(cudaStream_t stream, const PoolWindows& windows, bool wide, const T* x, T* y, Index* indices) {
  const int64_t count = windows.outputs() / (wide ? widest<T> : 1);
  const auto kernel = wide ? find_maxima<T, widest<T>, Index> : find_maxima<T, 1, Index>;
  kernel<<<blocks_for(count), block_size, 0, stream>>>(x, y, indices, windows, count);
}

template <class T>
void queue_maxima(cudaStream_t stream, const PoolWindows& windows, const T* x, T* y, void* indices) {
  if (windows.outputs() == 0 || (!y && !indices)) return;
  const bool wide =
      windows.fits_packs<T>() && aligned_for_packs(x) && aligned_for_packs(y) && aligned_for_packs(indices);
  if (max_index_bytes(windows) > 1)
    return queue_any_maxima(stream, windows, wide, x, y, static_cast<int32_t*>(indices));
  auto* const small_indices = static_cast<uint8_t*>(indices);
  const int extent = wide && has_no_empty_windows(windows) ? square_extent(windows) : 0;
  if (extent == 2)
    queue_square_maxima<T, 2>(stream, windows, x, y, small_indices);
  else if (extent == 3)
    queue_square_maxima<T, 3>(stream, windows, x, y, small_indices);
  else
    queue_any_maxima(stream, windows, wide, x, y, small_indices);
}

template <class T, int extent>
void queue_pairs(cudaStream_t stream, const PoolWindows& windows, const T* dy, const uint8_t* indices, T* dx) {
  const int64_t count = windows.images * windows.in[0] * ((windows.in[1] + 1) / 2) * ((windows.in[2] + 1) / 2) *
                        (windows.channels / widest<T>);
  const auto kernel =
      is_odd_pad<extent>(windows.pad[1]) ? collect_pairs<T, extent, true> : collect_pairs<T, extent, false>;
  kernel<<<blocks_for(count), block_size, 0, stream>>>(dy, indices, dx, windows, count);
}

template <class T, class Index>
void queue_collect(cudaStream_t stream, const PoolWindows& windows, bool wide, const T* dy, const Index* indices,
                   T* dx) {
  const int64_t count = windows.inputs() / (wide ? widest<T> : 1);
  const auto kernel = wide ? collect<T, widest<T>, Index> : collect<T, 1, Index>;
  kernel<<<blocks_for(count), block_size, 0, stream>>>(dy, indices, dx, windows, count);
}

template <class T>
void queue_max_gradient(cudaStream_t stream, const PoolWindows& windows, const T* dy, const void* indices, T* dx) {
  if (windows.inputs() == 0) return;
  const bool wide =
      windows.fits_packs<T>() && aligned_for_packs(dy) && aligned_for_packs(indices) && aligned_for_packs(dx);
  if (max_index_bytes(windows) > 1)
    return queue_collect(stream, windows, wide, dy, static_cast<const int32_t*>(indices), dx);
  const auto* const small_indices = static_cast<const uint8_t*>(indices);
  const bool in_pairs =
      wide && windows.stride[1] == 2 && windows.stride[2] == 2 && windows.pad[1] % 2 == windows.pad[2] % 2;
  const int extent = in_pairs ? square_extent(windows) : 0;
  if (extent == 2)
    queue_pairs<T, 2>(stream, windows, dy, small_indices, dx);
  else if (extent == 3)
    queue_pairs<T, 3>(stream, windows, dy, small_indices, dx);
  else
    queue_collect(stream, windows, wide, dy, small_indices, dx);
}

}  // namespace

size_t max_index_bytes(const PoolWindows& w) {
  const bool is_small = double(w.kernel[0]) * w.kernel[1] * w.kernel[2] < no_pooling_index;
  return is_small ? sizeof(uint8_t) : sizeof(int32_t);
}

void queue_maxima(cudaStream_t stream, DType dtype, const PoolWindows& windows, const void* data, void* maxima,
                  void* indices) {
  visit_floating(dtype, [&]<class T>(std::type_identity<T>) {
    queue_maxima(stream, windows, static_cast<const T*>(data), static_cast<T*>(maxima), indices);
  });
}

void queue_max_gradient(cudaStream_t stream, DType dtype, const PoolWindows& windows, const void* out_grad,
                        const void* indices, void* data_grad) {
  visit_floating(dtype, [&]<class T>(std::type_identity<T>) {
    queue_max_gradient(stream, windows, static_cast<const T*>(out_grad), indices, static_cast<T*>(data_grad));
  });
}

}  // namespace symbind::cuda_backend
