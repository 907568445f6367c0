#include "symbind/backend/cpu/tile_kernels.h"

#include "symbind/backend/cpu/loops.h"

namespace symbind::cpu_backend {
namespace {

template <class C, int Bytes>
struct VectorOf {
  using type [[gnu::vector_size(Bytes)]] = C;
  using unaligned [[gnu::vector_size(Bytes), gnu::aligned(sizeof(C)), gnu::may_alias]] = C;
  static constexpr int64_t lanes = Bytes / static_cast<int64_t>(sizeof(C));
};

// Rows × Vectors vectors of sums, of columns [column, column + Vectors · lanes).
template <class C, int Bytes, int Rows, int Vectors>
[[gnu::always_inline]] inline void multiply_tile(const C* a, const C* b, const int64_t* offsets, int64_t depth, C* sums,
                                                 int64_t step, bool add) {
  using V = VectorOf<C, Bytes>;
  typename V::type tile[Rows][Vectors] = {};
  for (int64_t k = 0; k < depth; ++k, a += Rows) {
    typename V::type row[Vectors];
#pragma GCC unroll 8
    for (int v = 0; v < Vectors; ++v)
      row[v] = *reinterpret_cast<const typename V::unaligned*>(b + offsets[k] + v * V::lanes);
#pragma GCC unroll 12
    for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 8
      for (int v = 0; v < Vectors; ++v) tile[r][v] += a[r] * row[v];
  }
#pragma GCC unroll 12
  for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 8
    for (int v = 0; v < Vectors; ++v) {
      auto* to = reinterpret_cast<typename V::unaligned*>(sums + r * step + v * V::lanes);
      *to = add ? *to + tile[r][v] : tile[r][v];
    }
}

// The number of vectors with which the sums of a tile fill the registers, which hides the latency of multiply-adds.
template <int Sums, int Rows>
inline constexpr int vectors_for = Sums / Rows >= 8   ? 8
                                   : Sums / Rows >= 4 ? 4
                                   : Sums / Rows >= 2 ? 2
                                                      : 1;

template <class C, int Bytes, int Sums, int Rows>
[[gnu::always_inline]] inline void multiply_strip(const C* a, const C* b, const int64_t* offsets, int64_t depth,
                                                  int64_t columns, C* sums, int64_t step, bool add) {
  constexpr int vectors = vectors_for<Sums, Rows>;
  constexpr int64_t lanes = VectorOf<C, Bytes>::lanes;
  int64_t column = 0;
  for (; column + (vectors - 1) * lanes < columns; column += vectors * lanes)
    multiply_tile<C, Bytes, Rows, vectors>(a, b + column, offsets, depth, sums + column, step, add);
  if constexpr (vectors > 4)
    if (column + 3 * lanes < columns) {
      multiply_tile<C, Bytes, Rows, 4>(a, b + column, offsets, depth, sums + column, step, add);
      column += 4 * lanes;
    }
  if constexpr (vectors > 2)
    if (column + lanes < columns) {
      multiply_tile<C, Bytes, Rows, 2>(a, b + column, offsets, depth, sums + column, step, add);
      column += 2 * lanes;
    }
  for (; column < columns; column += lanes)
    multiply_tile<C, Bytes, Rows, 1>(a, b + column, offsets, depth, sums + column, step, add);
}

template <class C, int Bytes, int Rows, int Columns>
[[gnu::always_inline]] inline void dots_tile(const C* a, int64_t a_step, const C* b, const int64_t* offsets,
                                             const int64_t* runs, int64_t run_count, int64_t vectors, C* sums,
                                             int64_t sums_step) {
  using V = VectorOf<C, Bytes>;
  typename V::type tile[Rows][Columns] = {};
  for (int64_t run = 0; run < run_count; ++run) {
    const C* from = b + runs[run];
    for (int64_t i = 0; i < vectors; ++i, a += V::lanes, from += V::lanes) {
      typename V::type row[Rows];
#pragma GCC unroll 4
      for (int r = 0; r < Rows; ++r) row[r] = *reinterpret_cast<const typename V::unaligned*>(a + r * a_step);
#pragma GCC unroll 6
      for (int j = 0; j < Columns; ++j) {
        const typename V::type other = *reinterpret_cast<const typename V::unaligned*>(from + offsets[j]);
#pragma GCC unroll 4
        for (int r = 0; r < Rows; ++r) tile[r][j] += row[r] * other;
      }
    }
  }
  for (int r = 0; r < Rows; ++r)
    for (int j = 0; j < Columns; ++j) {
      C sum = 0;
      for (int64_t lane = 0; lane < V::lanes; ++lane) sum += tile[r][j][lane];
      sums[r * sums_step + j] += sum;
    }
}

// Registers for the sums of all columns, or of half of them at a time.
template <class C, int Bytes, int Rows, int Columns>
[[gnu::always_inline]] inline void dots_strip(const C* a, int64_t a_step, const C* b, const int64_t* offsets,
                                              const int64_t* runs, int64_t run_count, int64_t vectors, C* sums,
                                              int64_t sums_step) {
  for (int first = 0; first < TileKernels<C>::dot_columns; first += Columns)
    dots_tile<C, Bytes, Rows, Columns>(a, a_step, b, offsets + first, runs, run_count, vectors, sums + first,
                                       sums_step);
}

#define SYMBIND_MULTIPLY(name, target, Bytes, Sums)                                                                    \
  template <class C, int Rows>                                                                                         \
  target void multiply_##name(const C* a, const C* b, const int64_t* offsets, int64_t depth, int64_t columns, C* sums, \
                              int64_t step, bool add) {                                                                \
    multiply_strip<C, Bytes, Sums, Rows>(a, b, offsets, depth, columns, sums, step, add);                              \
  }
#define SYMBIND_DOTS(name, target, Bytes, Columns)                                                             \
  template <class C, int Rows>                                                                                 \
  target void dots_##name(const C* a, int64_t a_step, const C* b, const int64_t* offsets, const int64_t* runs, \
                          int64_t run_count, int64_t vectors, C* sums, int64_t sums_step) {                    \
    dots_strip<C, Bytes, Rows, Columns>(a, a_step, b, offsets, runs, run_count, vectors, sums, sums_step);     \
  }

SYMBIND_MULTIPLY(baseline, , 16, 12)
SYMBIND_DOTS(baseline, , 16, 3)

#if defined(__x86_64__) && defined(__GNUC__)
#define SYMBIND_AVX512 [[gnu::target("arch=x86-64-v4")]]
#define SYMBIND_AVX2 [[gnu::target("arch=x86-64-v3")]]
SYMBIND_MULTIPLY(avx512, SYMBIND_AVX512, 64, 24)
SYMBIND_DOTS(avx512, SYMBIND_AVX512, 64, 6)
SYMBIND_MULTIPLY(avx2, SYMBIND_AVX2, 32, 12)
SYMBIND_DOTS(avx2, SYMBIND_AVX2, 32, 3)
#endif

#define SYMBIND_ROWS_TO_6(name) nullptr, name<C, 1>, name<C, 2>, name<C, 3>, name<C, 4>, name<C, 5>, name<C, 6>
#define SYMBIND_ROWS_TO_12(name) \
  SYMBIND_ROWS_TO_6(name), name<C, 7>, name<C, 8>, name<C, 9>, name<C, 10>, name<C, 11>, name<C, 12>
#define SYMBIND_ROWS_TO_4(name) nullptr, name<C, 1>, name<C, 2>, name<C, 3>, name<C, 4>

}  // namespace

template <class C>
const TileKernels<C>& tile_kernels() {
#if defined(__x86_64__) && defined(__GNUC__)
  static constexpr TileKernels<C> avx512{
      64 / sizeof(C), 12, 4, {SYMBIND_ROWS_TO_12(multiply_avx512)}, {SYMBIND_ROWS_TO_4(dots_avx512)}};
  static constexpr TileKernels<C> avx2{
      32 / sizeof(C), 6, 3, {SYMBIND_ROWS_TO_6(multiply_avx2)}, {SYMBIND_ROWS_TO_4(dots_avx2)}};
  if (instruction_set() == InstructionSet::avx512) return avx512;
  if (instruction_set() == InstructionSet::avx2) return avx2;
#endif
  static constexpr TileKernels<C> baseline{
      16 / sizeof(C), 6, 3, {SYMBIND_ROWS_TO_6(multiply_baseline)}, {SYMBIND_ROWS_TO_4(dots_baseline)}};
  return baseline;
}

template const TileKernels<float>& tile_kernels();
template const TileKernels<double>& tile_kernels();

}  // namespace symbind::cpu_backend
