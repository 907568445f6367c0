// Transposition of matrices in tiles that stay in registers. For use inside for_range(), which compiles it for several
// instruction sets.
#pragma once

#include <algorithm>
#include <cstdint>

namespace symbind::cpu_backend {

inline constexpr int64_t tile_side = 8;

// out[j · out_step + i] = in[i · in_step + j] for i, j < 8: pairs of single elements, of pairs and of fours are
// swapped.
template <class T>
[[gnu::always_inline]] inline void transpose_tile(const T* in, int64_t in_step, T* out, int64_t out_step) {
  using Vector [[gnu::vector_size(tile_side * sizeof(T))]] = T;
  using Unaligned [[gnu::vector_size(tile_side * sizeof(T)), gnu::aligned(sizeof(T)), gnu::may_alias]] = T;
  Vector r[tile_side];
#pragma GCC unroll 8
  for (int64_t i = 0; i < tile_side; ++i) r[i] = *reinterpret_cast<const Unaligned*>(in + i * in_step);
#pragma GCC unroll 4
  for (int64_t i = 0; i < tile_side; i += 2) {
    const Vector a = r[i], b = r[i + 1];
    r[i] = __builtin_shufflevector(a, b, 0, 8, 2, 10, 4, 12, 6, 14);
    r[i + 1] = __builtin_shufflevector(a, b, 1, 9, 3, 11, 5, 13, 7, 15);
  }
#pragma GCC unroll 4
  for (const int64_t i : {0, 1, 4, 5}) {
    const Vector a = r[i], b = r[i + 2];
    r[i] = __builtin_shufflevector(a, b, 0, 1, 8, 9, 4, 5, 12, 13);
    r[i + 2] = __builtin_shufflevector(a, b, 2, 3, 10, 11, 6, 7, 14, 15);
  }
#pragma GCC unroll 4
  for (int64_t i = 0; i < 4; ++i) {
    const Vector a = r[i], b = r[i + 4];
    r[i] = __builtin_shufflevector(a, b, 0, 1, 2, 3, 8, 9, 10, 11);
    r[i + 4] = __builtin_shufflevector(a, b, 4, 5, 6, 7, 12, 13, 14, 15);
  }
#pragma GCC unroll 8
  for (int64_t j = 0; j < tile_side; ++j) *reinterpret_cast<Unaligned*>(out + j * out_step) = r[j];
}

// out[j · out_step + i] = in[i · in_step + j] for i < rows, j < columns.
template <class T>
[[gnu::always_inline]] inline void transpose_block(const T* in, int64_t in_step, T* out, int64_t out_step, int64_t rows,
                                                   int64_t columns) {
  const int64_t whole_rows = rows / tile_side * tile_side, whole_columns = columns / tile_side * tile_side;
  for (int64_t j = 0; j < whole_columns; j += tile_side)
    for (int64_t i = 0; i < whole_rows; i += tile_side)
      transpose_tile(in + i * in_step + j, in_step, out + j * out_step + i, out_step);
  for (int64_t j = 0; j < columns; ++j)
    for (int64_t i = j < whole_columns ? whole_rows : 0; i < rows; ++i) out[j * out_step + i] = in[i * in_step + j];
}

}  // namespace symbind::cpu_backend
