// Dot products along rows (row_dots.h), as templates over an instruction set's vectors (see row_vectors.h).
//
// Sixteen lanes whatever the width of a vector, so that sums are added in the same order on every processor.
#pragma once

#include "symbind/backend/cpu/row_vectors.h"

namespace symbind::cpu_backend::vectors {

inline constexpr int64_t dot_lanes = 16;

// The remainder at the end of a row is read by a vector that overlaps the previous one: lanes [0, covered) were already
// added.
template <class V, class T>
[[gnu::always_inline]] inline typename V::Float uncovered(const T* from, int part, int64_t covered) {
  return V::first(covered - part * V::width, V::same(0), V::load(from + part * V::width));
}

// `rows` rows from `first` on, so that values loaded from the vectors are reused.
template <class V, int vectors, int rows, class T>
[[gnu::always_inline]] inline void dots_of_rows(const RowDots& size, int64_t first, const float* x, const T* matrix,
                                                const float* bias, float* y) {
  using Float = typename V::Float;
  constexpr int parts = static_cast<int>(dot_lanes / V::width);
  constexpr int chains = vectors <= 2 ? 4 / vectors : 1;  // independent sums
  const int64_t inner = size.inner, last = inner - dot_lanes, covered = dot_lanes - inner % dot_lanes;
  const T* const w = matrix + first * inner;
  Float sums[rows][vectors][chains][parts] = {};
  const auto add = [&](int chain, int part, const auto& load) __attribute__((always_inline)) {
    Float factors[vectors];
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) factors[v] = load(x + v * inner);
#pragma GCC unroll 4
    for (int row = 0; row < rows; ++row) {
      const Float factor = load(w + row * inner);
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) sums[row][v][chain][part] += factor * factors[v];
    }
  };
  const auto step = [&](int64_t at, int chain) __attribute__((always_inline)) {
#pragma GCC unroll 2
    for (int part = 0; part < parts; ++part)
      add(
          chain,
          part, [=](const auto* from) __attribute__((always_inline)) { return V::load(from + at + part * V::width); });
  };
  int64_t k = 0;
  for (; k + chains * dot_lanes <= inner; k += chains * dot_lanes)
#pragma GCC unroll 4
    for (int chain = 0; chain < chains; ++chain) step(k + chain * dot_lanes, chain);
  for (; k + dot_lanes <= inner; k += dot_lanes) step(k, 0);
  if (k < inner) {
#pragma GCC unroll 2
    for (int part = 0; part < parts; ++part)
      add(
          0, part, [=](const auto* from) __attribute__((always_inline)) {
            return uncovered<V>(from + last, part, covered);
          });
  }
#pragma GCC unroll 4
  for (int row = 0; row < rows; ++row)
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) {
      Float all[parts];
#pragma GCC unroll 2
      for (int part = 0; part < parts; ++part) {
        all[part] = sums[row][v][0][part];
#pragma GCC unroll 4
        for (int chain = 1; chain < chains; ++chain) all[part] += sums[row][v][chain][part];
      }
      const float sum = V::sum(parts == 2 ? all[0] + all[parts - 1] : all[0]);
      y[v * size.vector_step + (first + row) * size.row_step] = sum + (bias ? bias[first + row] : 0.0f);
    }
}

template <class V, int vectors, class T>
void dots_of(const RowDots& size, int64_t begin, int64_t end, const float* x, const T* matrix, const float* bias,
             float* y) {
  constexpr int rows = V::registers == 32 && vectors > 1 ? 4 : 1;  // one vector is limited by reading the matrix
  int64_t row = begin;
  for (; row + rows <= end; row += rows) dots_of_rows<V, vectors, rows>(size, row, x, matrix, bias, y);
  for (; row < end; ++row) dots_of_rows<V, vectors, 1>(size, row, x, matrix, bias, y);
}

template <class V, class T>
void dots(const RowDots& size, int64_t begin, int64_t end, const float* x, const T* matrix, const float* bias,
          float* y) {
  switch (size.vectors) {
    case 1:
      return dots_of<V, 1>(size, begin, end, x, matrix, bias, y);
    case 2:
      return dots_of<V, 2>(size, begin, end, x, matrix, bias, y);
    case 3:
      return dots_of<V, 3>(size, begin, end, x, matrix, bias, y);
    default:
      return dots_of<V, 4>(size, begin, end, x, matrix, bias, y);
  }
}

template <class V, class T>
constexpr DotKernels<T> dot_kernels_of() {
  return {dots<V, T>};
}

}  // namespace symbind::cpu_backend::vectors
