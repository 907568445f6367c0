#include "symbind/backend/cpu/depthwise_kernels.h"

#include <algorithm>

#include "symbind/backend/cpu/lane_sums.h"
#include "symbind/backend/cpu/loops.h"

namespace symbind::cpu_backend::depthwise {
namespace {

constexpr int most_dots = 9;                // sums of the weight's gradient in registers
constexpr int64_t most_dot_vectors = 4096;  // added in float; more are added in double

template <int Bytes>
struct VectorOf {
  using type [[gnu::vector_size(Bytes)]] = float;
  using unaligned [[gnu::vector_size(Bytes), gnu::aligned(4), gnu::may_alias]] = float;
};
template <int Bytes>
inline constexpr int64_t lanes_of = Bytes / 4;

template <int Bytes>
[[gnu::always_inline]] inline typename VectorOf<Bytes>::type load(const float* from) {
  return *reinterpret_cast<const typename VectorOf<Bytes>::unaligned*>(from);
}
template <int Bytes>
[[gnu::always_inline]] inline void store(float* to, typename VectorOf<Bytes>::type value) {
  *reinterpret_cast<typename VectorOf<Bytes>::unaligned*>(to) = value;
}

// ---- Sums over taps -------------------------------------------------------------------------------------------------

// Rows of `Vectors` vectors and, unless TailBytes is 0, a narrower one. Rows are stored in order: what a row writes
// past its end is overwritten by the next.
template <int Bytes, int Vectors, int TailBytes, int Rows>
[[gnu::always_inline]] inline void tile(const float* source, int64_t row_step, const Taps& taps, const float* weights,
                                        float start, float* to, int64_t to_step) {
  constexpr int used = std::max(Vectors, 1), tail_bytes = std::max(TailBytes, 16);
  typename VectorOf<Bytes>::type sums[Rows][used];
  typename VectorOf<tail_bytes>::type tails[Rows];
#pragma GCC unroll 8
  for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 8
    for (int v = 0; v < used; ++v) sums[r][v] = typename VectorOf<Bytes>::type{} + start;
    tails[r] = typename VectorOf<tail_bytes>::type{} + start;
  }
  for (int64_t k = 0; k < taps.count; ++k) {
    const float* const from = source + taps.offsets[k];
    const float weight = weights[k];
#pragma GCC unroll 8
    for (int r = 0; r < Rows; ++r) {
      const float* const row = from + r * row_step;
#pragma GCC unroll 8
      for (int v = 0; v < Vectors; ++v) sums[r][v] += weight * load<Bytes>(row + v * lanes_of<Bytes>);
      if constexpr (TailBytes > 0) tails[r] += weight * load<tail_bytes>(row + Vectors * lanes_of<Bytes>);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 8
    for (int v = 0; v < Vectors; ++v) store<Bytes>(to + r * to_step + v * lanes_of<Bytes>, sums[r][v]);
    if constexpr (TailBytes > 0) store<tail_bytes>(to + r * to_step + Vectors * lanes_of<Bytes>, tails[r]);
  }
}

// All rows of a grid whose rows are so many vectors.
template <int Bytes, int Vectors, int TailBytes>
[[gnu::always_inline]] inline void narrow_rows(const Grid& grid, const float* source, const Taps& taps,
                                               const float* weights, float start, float* to) {
  constexpr int all = Vectors + (TailBytes > 0 ? 1 : 0), most = all == 1 ? 8 : all == 2 ? 4 : 2;
  for (int64_t d = 0; d < grid.depth; ++d) {
    const float* row = source + d * grid.depth_step;
    int64_t rest = grid.rows;
    const auto run = [&]<int Rows>() __attribute__((always_inline)) {
      tile<Bytes, Vectors, TailBytes, Rows>(row, grid.row_step, taps, weights, start, to, grid.columns);
      row += Rows * grid.row_step;
      to += Rows * grid.columns;
      rest -= Rows;
    };
    while (rest >= most) run.template operator()<most>();  // NOLINT(bugprone-infinite-loop): run() changes rest
    if constexpr (most > 4)
      if (rest >= 4) run.template operator()<4>();
    if constexpr (most > 2)
      if (rest >= 2) run.template operator()<2>();
    if (rest > 0) run.template operator()<1>();
  }
}

template <int Bytes>
[[gnu::always_inline]] inline void wide_rows(const Grid& grid, const float* source, const Taps& taps,
                                             const float* weights, float start, float* to) {
  constexpr int64_t lanes = lanes_of<Bytes>;
  for (int64_t d = 0; d < grid.depth; ++d)
    for (int64_t r = 0; r < grid.rows; ++r, to += grid.columns) {
      const float* const row = source + d * grid.depth_step + r * grid.row_step;
      int64_t column = 0;
      for (; column + 8 * lanes <= grid.columns; column += 8 * lanes)
        tile<Bytes, 8, 0, 1>(row + column, 0, taps, weights, start, to + column, 0);
      if (column + 4 * lanes <= grid.columns) {
        tile<Bytes, 4, 0, 1>(row + column, 0, taps, weights, start, to + column, 0);
        column += 4 * lanes;
      }
      if (column + 2 * lanes <= grid.columns) {
        tile<Bytes, 2, 0, 1>(row + column, 0, taps, weights, start, to + column, 0);
        column += 2 * lanes;
      }
      for (; column < grid.columns; column += lanes)
        tile<Bytes, 1, 0, 1>(row + column, 0, taps, weights, start, to + column, 0);
    }
}

template <int Bytes>
[[gnu::always_inline]] inline void convolve_in(const Grid& grid, const float* source, const Taps& taps,
                                               const float* weights, float start, float* to) {
  constexpr int64_t lanes = lanes_of<Bytes>;
  if (grid.columns > 4 * lanes) return wide_rows<Bytes>(grid, source, taps, weights, start, to);
  const int64_t over = grid.columns % lanes, tail = over == 0 ? 0 : over <= 4 ? 4 : over <= 8 ? 8 : 16;
  const int64_t vectors = grid.columns / lanes + (tail >= lanes ? 1 : 0);
  const auto with = [&]<int Vectors>() __attribute__((always_inline)) {
    if constexpr (Vectors < 4 && Bytes > 32)
      if (tail == 8) return narrow_rows<Bytes, Vectors, 32>(grid, source, taps, weights, start, to);
    if constexpr (Vectors < 4 && Bytes > 16)
      if (tail == 4) return narrow_rows<Bytes, Vectors, 16>(grid, source, taps, weights, start, to);
    if constexpr (Vectors > 0) narrow_rows<Bytes, Vectors, 0>(grid, source, taps, weights, start, to);
  };
  if (vectors == 0) with.template operator()<0>();
  if (vectors == 1) with.template operator()<1>();
  if (vectors == 2) with.template operator()<2>();
  if (vectors == 3) with.template operator()<3>();
  if (vectors == 4) with.template operator()<4>();
}

template <int Bytes>
[[gnu::always_inline]] inline void together_in(const Products& products, const float* source, const float* weights,
                                               const float* start, float* to) {
  constexpr int vectors = static_cast<int>(plane_lanes / lanes_of<Bytes>);
  int32_t first = 0;
  for (const int32_t end : products.ends) {
    typename VectorOf<Bytes>::type sums[vectors];
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) sums[v] = load<Bytes>(start + v * lanes_of<Bytes>);
    for (; first < end; ++first) {
      const Product product = products.list[static_cast<size_t>(first)];
      const float* const element = source + product.source * plane_lanes;
      const float* const weight = weights + product.weight * plane_lanes;
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v)
        sums[v] += load<Bytes>(element + v * lanes_of<Bytes>) * load<Bytes>(weight + v * lanes_of<Bytes>);
    }
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) store<Bytes>(to + v * lanes_of<Bytes>, sums[v]);
    to += plane_lanes;
  }
}

// ---- Products summed over outputs -----------------------------------------------------------------------------------

// The vector width with the least waste per row.
template <int Bytes>
[[gnu::always_inline]] inline int64_t dot_lanes_in(int64_t columns) {
  if constexpr (Bytes > 32)
    if ((columns + 15) / 16 * 7 <= (columns + 7) / 8 * 4) return 16;
  if constexpr (Bytes > 16)
    if ((columns + 7) / 8 * 9 <= (columns + 3) / 4 * 8) return 8;
  return 4;
}

template <int Bytes, int Count>
[[gnu::always_inline]] inline void dots_of(const Grid& grid, int64_t vectors, const float* grad, int64_t grad_step,
                                           const float* source, const int64_t* offsets, double* sums) {
  typename VectorOf<Bytes>::type lanes[Count] = {};
  for (int64_t d = 0; d < grid.depth; ++d)
    for (int64_t r = 0; r < grid.rows; ++r) {
      const float* const grads = grad + (d * grid.rows + r) * grad_step;
      const float* const row = source + d * grid.depth_step + r * grid.row_step;
      for (int64_t v = 0; v < vectors; ++v) {
        const auto factor = load<Bytes>(grads + v * lanes_of<Bytes>);
#pragma GCC unroll 9
        for (int k = 0; k < Count; ++k) lanes[k] += factor * load<Bytes>(row + v * lanes_of<Bytes> + offsets[k]);
      }
    }
#pragma GCC unroll 9
  for (int k = 0; k < Count; ++k) {
    float sum = 0;
    for (int64_t lane = 0; lane < lanes_of<Bytes>; ++lane) sum += lanes[k][lane];
    sums[k] += static_cast<double>(sum);
  }
}

// Groups of taps as even as possible.
template <int Bytes>
[[gnu::always_inline]] inline void dots_block(const Grid& grid, int64_t vectors, const float* grad, int64_t grad_step,
                                              const float* source, const Taps& taps, double* sums) {
  const int64_t groups = (taps.count + most_dots - 1) / most_dots;
  for (int64_t group = 0; group < groups; ++group) {
    const int64_t first = taps.count * group / groups, count = taps.count * (group + 1) / groups - first;
    const auto with = [&]<int Count>() __attribute__((always_inline)) {
      if (count == Count)
        dots_of<Bytes, Count>(grid, vectors, grad, grad_step, source, taps.offsets + first, sums + first);
    };
    with.template operator()<1>();
    with.template operator()<2>();
    with.template operator()<3>();
    with.template operator()<4>();
    with.template operator()<5>();
    with.template operator()<6>();
    with.template operator()<7>();
    with.template operator()<8>();
    with.template operator()<9>();
  }
}

// Blocks small enough that sums in float are accurate.
template <int Bytes>
[[gnu::always_inline]] inline void dots_with(const Grid& grid, const float* grad, int64_t grad_step,
                                             const float* source, const Taps& taps, double* sums) {
  const int64_t vectors = (grid.columns + lanes_of<Bytes> - 1) / lanes_of<Bytes>;
  if (grid.depth * grid.rows * vectors <= most_dot_vectors)
    return dots_block<Bytes>(grid, vectors, grad, grad_step, source, taps, sums);
  const int64_t rows = std::max<int64_t>(1, most_dot_vectors / vectors);
  for (int64_t d = 0; d < grid.depth; ++d)
    for (int64_t r = 0; r < grid.rows; r += rows)
      for (int64_t v = 0; v < vectors; v += most_dot_vectors) {
        Grid block = grid;
        block.depth = 1;
        block.rows = std::min(rows, grid.rows - r);
        dots_block<Bytes>(block, std::min(most_dot_vectors, vectors - v),
                          grad + (d * grid.rows + r) * grad_step + v * lanes_of<Bytes>, grad_step,
                          source + d * grid.depth_step + r * grid.row_step + v * lanes_of<Bytes>, taps, sums);
      }
}

template <int Bytes>
[[gnu::always_inline]] inline void dots_in(const Grid& grid, const float* grad, int64_t grad_step, const float* source,
                                           const Taps& taps, double* sums) {
  const int64_t lanes = dot_lanes_in<Bytes>(grid.columns);
  if constexpr (Bytes > 32)
    if (lanes == 16) return dots_with<64>(grid, grad, grad_step, source, taps, sums);
  if constexpr (Bytes > 16)
    if (lanes == 8) return dots_with<32>(grid, grad, grad_step, source, taps, sums);
  dots_with<16>(grid, grad, grad_step, source, taps, sums);
}

// ---- Copies ---------------------------------------------------------------------------------------------------------

// Nothing is read or written past the row: its last vector overlaps the one before it.
template <int Bytes>
[[gnu::always_inline]] inline void copy_row(const float* from, float* to, int64_t count) {
  constexpr int64_t lanes = lanes_of<Bytes>;
  if (count < lanes) {
    if constexpr (Bytes > 16)
      copy_row<Bytes / 2>(from, to, count);
    else
      for (int64_t i = 0; i < count; ++i) to[i] = from[i];
    return;
  }
  for (int64_t i = 0; i + lanes <= count; i += lanes) store<Bytes>(to + i, load<Bytes>(from + i));
  store<Bytes>(to + count - lanes, load<Bytes>(from + count - lanes));
}

template <int64_t Stride>
[[gnu::always_inline]] inline void pick(const float* from, float* to, int64_t count) {
#pragma GCC ivdep
  for (int64_t i = 0; i < count; ++i) to[i] = from[i * Stride];
}

template <int Bytes>
[[gnu::always_inline]] inline void copy_rows_in(const std::vector<RowCopy>& rows, int64_t stride, const float* from,
                                                float* to) {
  if (stride == 1)
    for (const RowCopy& row : rows) copy_row<Bytes>(from + row.from, to + row.to, row.count);
  else if (stride == 2)
    for (const RowCopy& row : rows) pick<2>(from + row.from, to + row.to, row.count);
  else if (stride == 3)
    for (const RowCopy& row : rows) pick<3>(from + row.from, to + row.to, row.count);
  else
    for (const RowCopy& row : rows)
      for (int64_t i = 0; i < row.count; ++i) to[row.to + i] = from[row.from + i * stride];
}

[[gnu::always_inline]] inline void finish_in(float* data, const float* added, bool relu, int64_t count) {
  if (added && relu)
    for (int64_t i = 0; i < count; ++i) {
      const float sum = data[i] + added[i];
      data[i] = sum < 0 ? 0 : sum;
    }
  else if (added)
    for (int64_t i = 0; i < count; ++i) data[i] += added[i];
  else if (relu)
    for (int64_t i = 0; i < count; ++i) data[i] = data[i] < 0 ? 0 : data[i];
}

#define SYMBIND_DEPTHWISE(name, target, Bytes)                                                                         \
  target void convolve_##name(const Grid& grid, const float* source, const Taps& taps, const float* weights,           \
                              float start, float* to) {                                                                \
    convolve_in<Bytes>(grid, source, taps, weights, start, to);                                                        \
  }                                                                                                                    \
  target void together_##name(const Products& products, const float* source, const float* weights, const float* start, \
                              float* to) {                                                                             \
    together_in<Bytes>(products, source, weights, start, to);                                                          \
  }                                                                                                                    \
  target void dots_##name(const Grid& grid, const float* grad, int64_t grad_step, const float* source,                 \
                          const Taps& taps, double* sums) {                                                            \
    dots_in<Bytes>(grid, grad, grad_step, source, taps, sums);                                                         \
  }                                                                                                                    \
  int64_t dot_lanes_##name(int64_t columns) { return dot_lanes_in<Bytes>(columns); }                                   \
  target double sum_##name(const float* data, int64_t count) {                                                         \
    return sum_in_lanes(                                                                                               \
        count, [=](int64_t i) __attribute__((always_inline)) { return data[i]; });                                     \
  }                                                                                                                    \
  target void copy_rows_##name(const std::vector<RowCopy>& rows, int64_t stride, const float* from, float* to) {       \
    copy_rows_in<Bytes>(rows, stride, from, to);                                                                       \
  }                                                                                                                    \
  target void finish_##name(float* data, const float* added, bool relu, int64_t count) {                               \
    finish_in(data, added, relu, count);                                                                               \
  }                                                                                                                    \
  constexpr Kernels kernels_##name{convolve_##name, together_##name,  dots_##name,  dot_lanes_##name,                  \
                                   sum_##name,      copy_rows_##name, finish_##name};

SYMBIND_DEPTHWISE(baseline, , 16)
#if defined(__x86_64__) && defined(__GNUC__)
SYMBIND_DEPTHWISE(avx2, [[gnu::target("arch=x86-64-v3")]], 32)
SYMBIND_DEPTHWISE(avx512, [[gnu::target("arch=x86-64-v4")]], 64)
#endif

}  // namespace

const Kernels& kernels() {
#if defined(__x86_64__) && defined(__GNUC__)
  if (instruction_set() == InstructionSet::avx512) return kernels_avx512;
  if (instruction_set() == InstructionSet::avx2) return kernels_avx2;
#endif
  return kernels_baseline;
}

}  // namespace symbind::cpu_backend::depthwise
