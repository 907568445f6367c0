// Pooling of several planes at a time, one in each lane of a vector: narrow planes fill vectors as well as wide ones,
// and half precision is converted on the way. Planes are interleaved in scratch (element of plane 0, of plane 1, …), a
// band of output rows at a time, so that what the windows read stays in the cache.
#include <array>

#include "symbind/backend/cpu/channel_lanes.h"
#include "symbind/backend/cpu/half.h"
#include "symbind/backend/cpu/loops.h"
#include "symbind/backend/cpu/pool.h"
#include "symbind/backend/cpu/transpose.h"

namespace symbind::cpu_backend {
namespace {

constexpr int64_t lanes = 8;             // of a vector
constexpr int64_t band_elements = 2048;  // of a plane, that a band should have at most
constexpr int64_t most_elements = 8192;  // that the windows of one output row may need
constexpr int64_t fewest_planes = 4;

using Vector = Lanes<lanes>;
using Indices [[gnu::vector_size(lanes * sizeof(int32_t))]] = int32_t;

// ---- Interleaving ---------------------------------------------------------------------------------------------------

// Elements [first, first + count) of planes that are `step` apart, interleaved by lane. `rows` is scratch for as many
// numbers, where T is not float.
template <class T>
[[gnu::always_inline]] inline void interleave(const T* from, int64_t step, int64_t planes, int64_t count, float* rows,
                                              float* to, int64_t width) {
  if constexpr (std::is_same_v<T, float>) {
    transpose_block(from, step, to, width, planes, count);
  } else {
    for (int64_t plane = 0; plane < planes; ++plane)
      if constexpr (std::is_same_v<T, float16>)
        widen(from + plane * step, rows + plane * count, count);
      else
        for (int64_t i = 0; i < count; ++i) rows[plane * count + i] = widened(from[plane * step + i]);
    transpose_block(rows, count, to, width, planes, count);
  }
}

template <class T>
[[gnu::always_inline]] inline void separate(const float* from, int64_t width, int64_t planes, int64_t count,
                                            float* rows, T* to, int64_t step) {
  if constexpr (std::is_same_v<T, float>) {
    transpose_block(from, width, to, step, count, planes);
  } else {
    transpose_block(from, width, rows, count, count, planes);
    for (int64_t plane = 0; plane < planes; ++plane)
      for (int64_t i = 0; i < count; ++i) to[plane * step + i] = narrowed<T>(rows[plane * count + i]);
  }
}

// ---- Bands ----------------------------------------------------------------------------------------------------------

// The axis that bands divide: those before it have one element.
size_t band_axis(const PoolingSize& size) {
  size_t axis = 0;
  while (axis < 2 && size.in[axis] == 1 && size.out[axis] == 1) ++axis;
  return axis;
}

int64_t inner_size(const std::array<int64_t, 3>& extents, size_t axis) {
  int64_t elements = 1;
  for (size_t inner = axis + 1; inner < 3; ++inner) elements *= extents[inner];
  return elements;
}

// Some output rows and the input elements that their windows read, both contiguous.
struct Band {
  std::array<int64_t, 3> begin, end;  // windows
  int64_t in_first, in_count;         // elements of an input plane
  int64_t out_first, out_count;       // elements of an output plane
};

struct Bands {
  PoolingSize size;
  size_t axis;
  int64_t in_row, out_row, rows;  // elements along the inner axes; output rows of a band

  explicit Bands(const PoolingSize& of) : size(of), axis(band_axis(of)) {
    in_row = inner_size(size.in, axis);
    out_row = inner_size(size.out, axis);
    rows = 1 + std::max<int64_t>(0, band_elements / in_row - size.kernel[axis]) / size.stride[axis];
    rows = std::min(rows, size.out[axis]);
  }
  int64_t count() const { return (size.out[axis] + rows - 1) / rows; }
  int64_t most_in() const {
    return std::min(size.in[axis], (rows - 1) * size.stride[axis] + size.kernel[axis]) * in_row;
  }
  int64_t most_out() const { return rows * out_row; }

  Band at(int64_t index) const {
    Band band{{}, size.out, 0, 0, 0, 0};
    band.begin[axis] = index * rows;
    band.end[axis] = std::min(size.out[axis], band.begin[axis] + rows);
    // A window beyond the input has no elements.
    const int64_t first = std::min(extent_at(size, axis, band.begin[axis]).begin, size.in[axis]);
    const int64_t last = std::max(first, extent_at(size, axis, band.end[axis] - 1).end);
    band.in_first = first * in_row;
    band.in_count = (last - first) * in_row;
    band.out_first = band.begin[axis] * out_row;
    band.out_count = (band.end[axis] - band.begin[axis]) * out_row;
    return band;
  }
};

// Calls visit(output index in the band, extents of the window) for the windows of a band, in order.
template <class Visit>
[[gnu::always_inline]] inline void each_window(const PoolingSize& size, const Band& band, const Visit& visit) {
  int64_t out = 0;
  for (int64_t d = band.begin[0]; d < band.end[0]; ++d) {
    const PoolExtent depth = extent_at(size, 0, d);
    for (int64_t h = band.begin[1]; h < band.end[1]; ++h) {
      const PoolExtent height = extent_at(size, 1, h);
      for (int64_t w = band.begin[2]; w < band.end[2]; ++w)
        visit(out++, std::array<PoolExtent, 3>{depth, height, extent_at(size, 2, w)});
    }
  }
}

// Calls visit(index in the plane) for the elements of a window, in order.
template <class Visit>
[[gnu::always_inline]] inline void each_element(const PoolingSize& size, const std::array<PoolExtent, 3>& window,
                                                const Visit& visit) {
  for (int64_t d = window[0].begin; d < window[0].end; ++d)
    for (int64_t h = window[1].begin; h < window[1].end; ++h) {
      const int64_t row = (d * size.in[1] + h) * size.in[2];
      for (int64_t w = window[2].begin; w < window[2].end; ++w) visit(row + w);
    }
}

// Planes that are computed together: 16 where that leaves every thread some.
int columns_for(int64_t planes) { return planes >= 4 * lanes ? 2 : 1; }

// Groups of `width` planes, in a piece for each thread; each piece has its own scratch.
struct Pieces {
  int64_t groups, count, elements;  // of scratch

  Pieces(const PoolingSize& size, int64_t width, int64_t scratch_elements)
      : groups((size.batch * size.channels + width - 1) / width), elements((scratch_elements + 15) / 16 * 16) {
    const int64_t window = size.kernel[0] * size.kernel[1] * size.kernel[2];
    const int64_t work = (size.out_size() * window + size.in_size()) * width / lanes;
    count = std::clamp<int64_t>(groups / (element_grain / (work + 1) + 1), 1, available_threads());
  }
  size_t bytes() const { return static_cast<size_t>(count * elements) * sizeof(float); }

  // Calls body(first group, end, scratch) for each piece.
  template <class Body>
  void run(void* scratch, const Body& body) const {
    for_elements(
        count,
        [&](int64_t first, int64_t last) {
          for (int64_t piece = first; piece < last; ++piece)
            body(groups * piece / count, groups * (piece + 1) / count, static_cast<float*>(scratch) + piece * elements);
        },
        1);
  }
};

// ---- Forward --------------------------------------------------------------------------------------------------------

// y[out · width + lane], the results of a band, from interleaved x.
template <int columns, PoolKind kind>
[[gnu::always_inline]] inline void pool_band(const PoolingSize& size, const Band& band, float least, const float* x,
                                             float* y) {
  constexpr int64_t width = columns * lanes;
  const float* const origin = x - band.in_first * width;
  each_window(
      size, band, [&](int64_t out, const std::array<PoolExtent, 3>& window) __attribute__((always_inline)) {
        Vector result[columns];
        for (int k = 0; k < columns; ++k) result[k] = Vector{} + (kind == PoolKind::max ? least : 0.0f);
        each_element(
            size, window, [&](int64_t in) __attribute__((always_inline)) {
              for (int k = 0; k < columns; ++k) {
                const Vector value = load<Vector>(origin + in * width + k * lanes);
                if constexpr (kind == PoolKind::max)
                  result[k] = value > result[k] ? value : result[k];
                else
                  result[k] += value;
              }
            });
        const int64_t divisor = window[0].counted * window[1].counted * window[2].counted;
        for (int k = 0; k < columns; ++k) {
          if (kind == PoolKind::avg && divisor > 0) result[k] /= static_cast<float>(divisor);
          store(y + out * width + k * lanes, result[k]);
        }
      });
}

template <class T, int columns, PoolKind kind>
std::unique_ptr<Kernel> build_forward(const PoolingSize& size) {
  constexpr int64_t width = columns * lanes;
  const int64_t planes = size.batch * size.channels, in = size.in_size(), out = size.out_size();
  const Bands bands(size);
  const int64_t most = std::max(bands.most_in(), bands.most_out()) * width;
  const Pieces pieces(size, width, 2 * most + bands.most_out() * width);
  return make_kernel(
      [=](const Args& args) {
        pieces.run(args.scratch,
                   [=, all_x = args.in<T>(0), all_y = args.out<T>()](int64_t begin, int64_t end, float* x) {
                     float *const rows = x + most, *const y = rows + most;
                     for (int64_t group = begin; group < end; ++group) {
                       const int64_t first = group * width, some = std::min(width, planes - first);
                       for (int64_t i = 0; i < bands.count(); ++i) {
                         const Band band = bands.at(i);
                         interleave(all_x + first * in + band.in_first, in, some, band.in_count, rows, x, width);
                         pool_band<columns, kind>(size, band, lowest<T>(), x, y);
                         separate(y, width, some, band.out_count, rows, all_y + first * out + band.out_first, out);
                       }
                     }
                   });
      },
      {.scratch_bytes = pieces.bytes()});
}

template <class T, PoolKind kind>
std::unique_ptr<Kernel> build_forward(const PoolingSize& size) {
  return columns_for(size.batch * size.channels) == 2 ? build_forward<T, 2, kind>(size)
                                                      : build_forward<T, 1, kind>(size);
}

// ---- The gradient of maxima -----------------------------------------------------------------------------------------

// Adds the gradients dy of a band's windows to the first of the largest elements of each: NaN is selected only if it
// comes first. The planes of dy and dx are `out` and `in` elements apart.
template <class T, int columns>
[[gnu::always_inline]] inline void unpool_band(const PoolingSize& size, const Band& band, const float* x, const T* dy,
                                               int64_t planes, float* dx) {
  constexpr int64_t width = columns * lanes;
  const int64_t in_size = size.in_size(), out_size = size.out_size();
  const float* const origin = x - band.in_first * width;
  each_window(
      size, band, [&](int64_t out, const std::array<PoolExtent, 3>& window) __attribute__((always_inline)) {
        for (const PoolExtent& extent : window)
          if (extent.begin >= extent.end) return;
        const int64_t first = (window[0].begin * size.in[1] + window[1].begin) * size.in[2] + window[2].begin;
        Vector best[columns];
        Indices at[columns];
        for (int k = 0; k < columns; ++k) {
          best[k] = load<Vector>(origin + first * width + k * lanes);
          at[k] = Indices{} + static_cast<int32_t>(first);
        }
        each_element(
            size, window, [&](int64_t in) __attribute__((always_inline)) {
              const Indices here = Indices{} + static_cast<int32_t>(in);
              for (int k = 0; k < columns; ++k) {
                const Vector value = load<Vector>(origin + in * width + k * lanes);
                const Indices larger = value > best[k];
                best[k] = larger ? value : best[k];
                at[k] = larger ? here : at[k];
              }
            });
        int32_t index[width];
        std::memcpy(index, at, sizeof(index));
        for (int64_t plane = 0; plane < planes; ++plane)
          dx[plane * in_size + index[plane]] += widened(dy[plane * out_size + out]);
      });
}

template <class T, int columns>
std::unique_ptr<Kernel> build_max_grad(const PoolingSize& size) {
  constexpr int64_t width = columns * lanes;
  constexpr bool converts = !std::is_same_v<T, float>;
  const int64_t planes = size.batch * size.channels, in = size.in_size(), out = size.out_size();
  const Bands bands(size);
  const int64_t band_size = bands.most_in() * width;
  // The gradients of half-precision planes are accumulated in scratch.
  const Pieces pieces(size, width, 2 * band_size + (converts ? in * width : 0));
  return make_kernel(
      [=](const Args& args) {
        pieces.run(args.scratch, [=, dy = args.in<T>(0), all_x = args.in<T>(1), all_dx = args.out<T>()](
                                     int64_t begin, int64_t end, float* x) {
          float* const gradient = x + 2 * band_size;
          for (int64_t group = begin; group < end; ++group) {
            const int64_t first = group * width, some = std::min(width, planes - first);
            float* dx;
            if constexpr (converts)
              dx = gradient;
            else
              dx = all_dx + first * in;
            std::fill_n(dx, some * in, 0.0f);
            for (int64_t i = 0; i < bands.count(); ++i) {
              const Band band = bands.at(i);
              interleave(all_x + first * in + band.in_first, in, some, band.in_count, x + band_size, x, width);
              unpool_band<T, columns>(size, band, x, dy + first * out + band.out_first, some, dx);
            }
            if constexpr (converts)
              for (int64_t i = 0; i < some * in; ++i) all_dx[first * in + i] = narrowed<T>(dx[i]);
          }
        });
      },
      {.scratch_bytes = pieces.bytes()});
}

// ---- The gradient of means and sums ---------------------------------------------------------------------------------

// Adds to dx[in · width + lane] from interleaved dy.
template <int columns>
[[gnu::always_inline]] inline void spread(const PoolingSize& size, bool is_mean, const float* dy, float* dx) {
  constexpr int64_t width = columns * lanes;
  each_window(
      size, Band{{}, size.out, 0, 0, 0, 0},
      [&](int64_t out, const std::array<PoolExtent, 3>& window) __attribute__((always_inline)) {
        const int64_t divisor = window[0].counted * window[1].counted * window[2].counted;
        Vector share[columns];
        for (int k = 0; k < columns; ++k) {
          share[k] = load<Vector>(dy + out * width + k * lanes);
          if (is_mean && divisor > 0) share[k] /= static_cast<float>(divisor);
        }
        each_element(
            size, window, [&](int64_t in) __attribute__((always_inline)) {
              for (int k = 0; k < columns; ++k) {
                float* const to = dx + in * width + k * lanes;
                store(to, load<Vector>(to) + share[k]);
              }
            });
      });
}

template <class T, int columns>
std::unique_ptr<Kernel> build_mean_grad(const PoolingSize& size, bool is_mean) {
  constexpr int64_t width = columns * lanes;
  const int64_t planes = size.batch * size.channels, in = size.in_size(), out = size.out_size();
  const Pieces pieces(size, width, (in + out + std::max(in, out)) * width);
  return make_kernel(
      [=](const Args& args) {
        pieces.run(args.scratch,
                   [=, all_dy = args.in<T>(0), all_dx = args.out<T>()](int64_t begin, int64_t end, float* dx) {
                     float* const dy = dx + in * width;
                     float* const rows = dy + out * width;
                     for (int64_t group = begin; group < end; ++group) {
                       const int64_t first = group * width, some = std::min(width, planes - first);
                       interleave(all_dy + first * out, out, some, out, rows, dy, width);
                       std::fill_n(dx, in * width, 0.0f);
                       spread<columns>(size, is_mean, dy, dx);
                       separate(dx, width, some, in, rows, all_dx + first * in, in);
                     }
                   });
      },
      {.scratch_bytes = pieces.bytes()});
}

// ---- Which poolings -------------------------------------------------------------------------------------------------

// Without AVX2 the compiler splits the vectors into single numbers.
bool fits_lanes(const PoolingSize& size, PoolKind kind) {
  if (instruction_set() < InstructionSet::avx2) return false;
  if (size.channels_last || kind == PoolKind::lp || size.in_size() == 0) return false;
  return size.batch * size.channels >= fewest_planes && Bands(size).most_in() <= most_elements;
}

// Small windows along a row long enough to fill vectors take less time than interleaving.
bool is_long_row(const PoolingSize& size) {
  return size.in_size() == size.in[2] && size.out_size() >= 100 && size.kernel[2] <= 3;
}

}  // namespace

bool suits_lanes(const PoolingSize& size, PoolKind kind, DType dtype) {
  return fits_lanes(size, kind) && !(dtype == DType::float32 && is_long_row(size));
}

bool suits_lanes_grad(const PoolingSize& size, PoolKind kind, DType dtype) {
  if (!fits_lanes(size, kind)) return false;
  // All but float32 maxima are accumulated in scratch, a whole plane in each lane.
  if (kind == PoolKind::max && dtype == DType::float32) return size.in_size() < std::numeric_limits<int32_t>::max();
  return std::max(size.in_size(), size.out_size()) <= most_elements;
}

template <class T>
std::unique_ptr<Kernel> build_pool_lanes(const PoolingSize& size, PoolKind kind) {
  if (kind == PoolKind::max) return build_forward<T, PoolKind::max>(size);
  if (kind == PoolKind::avg) return build_forward<T, PoolKind::avg>(size);
  return build_forward<T, PoolKind::sum>(size);
}

template <class T>
std::unique_ptr<Kernel> build_pool_lanes_grad(const PoolingSize& size, PoolKind kind) {
  const bool two = columns_for(size.batch * size.channels) == 2;
  if (kind == PoolKind::max) return two ? build_max_grad<T, 2>(size) : build_max_grad<T, 1>(size);
  const bool is_mean = kind == PoolKind::avg;
  return two ? build_mean_grad<T, 2>(size, is_mean) : build_mean_grad<T, 1>(size, is_mean);
}

#define SYMBIND_POOL_LANES(T)                                                         \
  template std::unique_ptr<Kernel> build_pool_lanes<T>(const PoolingSize&, PoolKind); \
  template std::unique_ptr<Kernel> build_pool_lanes_grad<T>(const PoolingSize&, PoolKind);
SYMBIND_POOL_LANES(float)
SYMBIND_POOL_LANES(float16)
SYMBIND_POOL_LANES(bfloat16)
#undef SYMBIND_POOL_LANES

}  // namespace symbind::cpu_backend
