#include "symbind/backend/cpu/packed_product.h"

#include <algorithm>

#include "symbind/backend/cpu/loops.h"

namespace symbind::cpu_backend {
namespace {

// The compiler splits a 64-byte vector into the registers there are: one of AVX-512, two of AVX2.
template <class T>
struct Lanes {
  static constexpr int64_t count = 64 / static_cast<int64_t>(sizeof(T));
  using Vector [[gnu::vector_size(64)]] = T;
};

constexpr int64_t block_inner = 256;  // this many rows of a strip stay in the first-level cache

// Accumulators of a tile: the 32 registers of AVX-512 hold 8 × 2 accumulators and the operands; the 16 of AVX2, half as
// wide, hold 6 × 1, which take twelve registers.
template <class T, int rows, int vectors>
[[gnu::always_inline]] inline void multiply_tile(int64_t inner, const T* a, int64_t a_step, const T* b, T* c,
                                                 int64_t c_step, int64_t width, bool accumulate) {
  using Vector = typename Lanes<T>::Vector;
  constexpr int64_t lanes = Lanes<T>::count, whole = vectors * lanes;
  Vector sums[rows][vectors] = {};
#pragma GCC unroll 1
  for (int64_t k = 0; k < inner; ++k, b += whole) {
    Vector factors[vectors];
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) __builtin_memcpy(&factors[v], b + v * lanes, sizeof(Vector));
#pragma GCC unroll 8
    for (int row = 0; row < rows; ++row) {
      const T factor = a[row * a_step + k];
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) sums[row][v] += factor * factors[v];
    }
  }
#pragma GCC unroll 8
  for (int row = 0; row < rows; ++row) {
    T* const to = c + row * c_step;
    if (width == whole) {
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) {
        Vector sum = sums[row][v];
        if (accumulate) {
          Vector old;
          __builtin_memcpy(&old, to + v * lanes, sizeof(Vector));
          sum += old;
        }
        __builtin_memcpy(to + v * lanes, &sum, sizeof(Vector));
      }
    } else {
      T sum[whole];
      __builtin_memcpy(sum, sums[row], sizeof(sum));
      for (int64_t i = 0; i < width; ++i) to[i] = accumulate ? to[i] + sum[i] : sum[i];
    }
  }
}

// A strip, over all rows.
template <class T, int most_rows, int vectors>
[[gnu::always_inline]] inline void multiply_strip(int64_t rows, int64_t inner, const Matrix<const T>& a, const T* b,
                                                  const Matrix<T>& c, int64_t width, bool accumulate) {
  int64_t row = 0;
  const auto some = [&]<int count>(std::integral_constant<int, count>) __attribute__((always_inline)) {
    for (; row + count <= rows; row += count)
      multiply_tile<T, count, vectors>(inner, a.data + row * a.step, a.step, b, c.data + row * c.step, c.step, width,
                                       accumulate);
  };
  some(std::integral_constant<int, most_rows>{});
  if constexpr (most_rows > 4) some(std::integral_constant<int, 4>{});
  if constexpr (most_rows > 2) some(std::integral_constant<int, 2>{});
  some(std::integral_constant<int, 1>{});
}

// Strips of two vectors with AVX-512, of one else.
template <class T>
int64_t strip_width() {
  return (instruction_set() == InstructionSet::avx512 ? 2 : 1) * Lanes<T>::count;
}

template <class T, int most_rows, int vectors>
[[gnu::always_inline]] inline void multiply_strips(int64_t rows, int64_t columns, int64_t inner,
                                                   const Matrix<const T>& a, const T* packed, const Matrix<T>& c,
                                                   bool accumulate) {
  constexpr int64_t lanes = Lanes<T>::count, most = vectors * lanes;
  for (int64_t column = 0; column < columns; column += most) {
    const int64_t width = std::min(most, columns - column);
    const int64_t stored = vectors > 1 && width <= lanes ? lanes : most;
    const T* const strip = packed + column * inner;
    for (int64_t first = 0; first < inner; first += block_inner) {
      const int64_t depth = std::min(block_inner, inner - first);
      const Matrix<const T> from{a.data + first, a.step};
      const Matrix<T> to{c.data + column, c.step};
      const bool add = accumulate || first > 0;
      if constexpr (vectors > 1)
        if (stored != most) {
          multiply_strip<T, most_rows, 1>(rows, depth, from, strip + first * stored, to, width, add);
          continue;
        }
      multiply_strip<T, most_rows, vectors>(rows, depth, from, strip + first * stored, to, width, add);
    }
  }
}

}  // namespace

template <class T>
int64_t packed_count(int64_t inner, int64_t columns) {
  constexpr int64_t lanes = Lanes<T>::count;
  return (columns + lanes - 1) / lanes * lanes * inner;
}

template <class T>
void pack(int64_t inner, int64_t columns, Matrix<const T> matrix, T* packed) {
  constexpr int64_t lanes = Lanes<T>::count;
  const int64_t most = strip_width<T>(), strips = (columns + most - 1) / most;
  parallel_for(strips, std::max<int64_t>(1, element_grain / (most * inner + 1)), [&](int64_t begin, int64_t end) {
    for (int64_t strip = begin; strip < end; ++strip) {
      const int64_t column = strip * most, there = std::min(most, columns - column);
      const int64_t stored = there <= lanes ? lanes : most;
      T* const to = packed + column * inner;
      if (there < stored) std::fill_n(to, stored * inner, T(0));
      if (matrix.transposed) {
        for (int64_t j = 0; j < there; ++j) {
          const T* const from = matrix.data + (column + j) * matrix.step;
          for (int64_t k = 0; k < inner; ++k) to[k * stored + j] = from[k];
        }
      } else {
        for (int64_t k = 0; k < inner; ++k) std::copy_n(matrix.data + k * matrix.step + column, there, to + k * stored);
      }
    }
  });
}

template <class T>
void multiply_packed(int64_t rows, int64_t columns, int64_t inner, Matrix<const T> a, const T* packed, Matrix<T> c,
                     bool accumulate) {
  if (inner == 0 && !accumulate)
    for (int64_t row = 0; row < rows; ++row) std::fill_n(c.data + row * c.step, columns, T(0));
  if (instruction_set() == InstructionSet::avx512)
    for_range(0, rows,
              [&](int64_t, int64_t end) { multiply_strips<T, 8, 2>(end, columns, inner, a, packed, c, accumulate); });
  else
    for_range<InstructionSet::avx2>(0, rows, [&](int64_t, int64_t end) {
      multiply_strips<T, 6, 1>(end, columns, inner, a, packed, c, accumulate);
    });
}

template int64_t packed_count<float>(int64_t, int64_t);
template int64_t packed_count<double>(int64_t, int64_t);
template void pack(int64_t, int64_t, Matrix<const float>, float*);
template void pack(int64_t, int64_t, Matrix<const double>, double*);
template void multiply_packed(int64_t, int64_t, int64_t, Matrix<const float>, const float*, Matrix<float>, bool);
template void multiply_packed(int64_t, int64_t, int64_t, Matrix<const double>, const double*, Matrix<double>, bool);

}  // namespace symbind::cpu_backend
