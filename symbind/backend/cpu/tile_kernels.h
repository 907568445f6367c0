// The innermost loops of matrix products and convolutions, on tiles of sums that stay in registers. Compiled for
// several instruction sets and chosen at run time.
#pragma once

#include <cstdint>

namespace symbind::cpu_backend {

// C is float or double. Operand b is not packed: its row k starts at b + offsets[k]. A vector may be read up to `lanes`
// elements past the last column: the values there do not matter, but must be readable.
template <class C>
struct TileKernels {
  static constexpr int64_t row_limit = 12;
  static constexpr int64_t dot_columns = 6;  // for every instruction set

  int64_t lanes;      // numbers in a vector
  int64_t most_rows;  // of a strip of a
  int64_t dot_rows;   // at most

  // sums[row · step + column] = (or += if `add`) Σ a[k · rows + row] · b[offsets[k] + column], for a strip of `rows`
  // rows. Whole vectors of sums are written. By the number of rows.
  using Multiply = void (*)(const C* a, const C* b, const int64_t* offsets, int64_t depth, int64_t columns, C* sums,
                            int64_t step, bool add);
  Multiply multiply[row_limit + 1];

  // sums[row · sums_step + j] += Σ a[row · a_step + run · vectors · lanes + i] · b[offsets[j] + runs[run] + i] over all
  // runs and i < vectors · lanes, for j < dot_columns. By the number of rows.
  using Dots = void (*)(const C* a, int64_t a_step, const C* b, const int64_t* offsets, const int64_t* runs,
                        int64_t run_count, int64_t vectors, C* sums, int64_t sums_step);
  Dots dots[5];
};

template <class C>
const TileKernels<C>& tile_kernels();

}  // namespace symbind::cpu_backend
