#include "symbind/backend/cpu/gemm.h"

#include <algorithm>
#include <type_traits>
#include <vector>

#include "symbind/backend/cpu/loops.h"

namespace symbind::cpu_backend {
namespace {

constexpr int64_t strip_rows = 6;     // six accumulators of a register each fit every instruction set
constexpr int64_t block_inner = 256;  // a strip of both operands stays in the first-level cache
constexpr int64_t block_columns = 1536;
constexpr int64_t task_strips = 8;  // strips of b that one task runs over

// The compiler splits a 64-byte vector into the registers there are.
template <class C>
struct Lanes {
  static constexpr int64_t count = 64 / static_cast<int64_t>(sizeof(C));
  using Vector [[gnu::vector_size(64)]] = C;
};

template <class T>
compute_type<T> element(const Matrix<const T>& m, int64_t row, int64_t column) {
  return static_cast<compute_type<T>>(m.transposed ? m.data[column * m.step + row] : m.data[row * m.step + column]);
}

// Rows [row, row + strip_rows) as inner × strip_rows, with zeros below the last row.
template <class T>
void pack_rows(const Matrix<const T>& a, int64_t row, int64_t rows, int64_t first, int64_t inner,
               compute_type<T>* packed) {
  const int64_t there = std::min(strip_rows, rows - row);
  if (there < strip_rows) std::fill(packed, packed + inner * strip_rows, compute_type<T>(0));
  if (a.transposed) {
    for (int64_t k = 0; k < inner; ++k)
      for (int64_t i = 0; i < there; ++i) packed[k * strip_rows + i] = element(a, row + i, first + k);
  } else {
    for (int64_t i = 0; i < there; ++i)
      for (int64_t k = 0; k < inner; ++k) packed[k * strip_rows + i] = element(a, row + i, first + k);
  }
}

// Columns [column, column + lanes) as inner × lanes, with zeros after the last column.
template <class T>
void pack_columns(const Matrix<const T>& b, int64_t column, int64_t columns, int64_t first, int64_t inner,
                  compute_type<T>* packed) {
  constexpr int64_t lanes = Lanes<compute_type<T>>::count;
  const int64_t there = std::min(lanes, columns - column);
  if (there < lanes) std::fill(packed, packed + inner * lanes, compute_type<T>(0));
  if (b.transposed) {
    for (int64_t j = 0; j < there; ++j)
      for (int64_t k = 0; k < inner; ++k) packed[k * lanes + j] = element(b, first + k, column + j);
  } else {
    for (int64_t k = 0; k < inner; ++k)
      for (int64_t j = 0; j < there; ++j) packed[k * lanes + j] = element(b, first + k, column + j);
  }
}

// One tile: strip_rows × lanes sums over inner.
template <class C>
[[gnu::always_inline]] inline void multiply_tile(const C* a, const C* b, int64_t inner, C* tile) {
  using Vector = typename Lanes<C>::Vector;
  constexpr int64_t lanes = Lanes<C>::count;
  Vector c0 = {}, c1 = {}, c2 = {}, c3 = {}, c4 = {}, c5 = {};
  for (int64_t k = 0; k < inner; ++k, a += strip_rows, b += lanes) {
    Vector row;
    __builtin_memcpy(&row, b, sizeof(row));
    c0 += a[0] * row;
    c1 += a[1] * row;
    c2 += a[2] * row;
    c3 += a[3] * row;
    c4 += a[4] * row;
    c5 += a[5] * row;
  }
  __builtin_memcpy(tile + 0 * lanes, &c0, sizeof(c0));
  __builtin_memcpy(tile + 1 * lanes, &c1, sizeof(c1));
  __builtin_memcpy(tile + 2 * lanes, &c2, sizeof(c2));
  __builtin_memcpy(tile + 3 * lanes, &c3, sizeof(c3));
  __builtin_memcpy(tile + 4 * lanes, &c4, sizeof(c4));
  __builtin_memcpy(tile + 5 * lanes, &c5, sizeof(c5));
}

template <class C>
std::vector<C>& packing_memory() {
  thread_local std::vector<C> memory;
  return memory;
}

}  // namespace

template <class T, class Out>
void gemm(int64_t rows, int64_t columns, int64_t inner, Matrix<const T> a, Matrix<const T> b, Matrix<Out> c,
          bool accumulate) {
  using C = compute_type<T>;
  constexpr int64_t lanes = Lanes<C>::count;
  if (rows <= 0 || columns <= 0) return;
  if (inner <= 0) {
    if (!accumulate)
      for (int64_t i = 0; i < rows; ++i) std::fill(c.data + i * c.step, c.data + i * c.step + columns, Out(0));
    return;
  }
  // A result that is rounded when stored is summed in one block.
  const int64_t most_inner = std::is_same_v<Out, C> ? std::min(inner, block_inner) : inner;
  const int64_t most_columns = std::min(columns, block_columns);
  std::vector<C>& memory = packing_memory<C>();
  memory.resize(static_cast<size_t>((most_columns + lanes - 1) / lanes * lanes * most_inner));
  C* const packed_b = memory.data();

  for (int64_t first = 0; first < inner; first += most_inner) {
    const int64_t depth = std::min(most_inner, inner - first);
    const bool add = accumulate || first > 0;
    for (int64_t left = 0; left < columns; left += most_columns) {
      const int64_t width = std::min(most_columns, columns - left);
      const int64_t strips = (width + lanes - 1) / lanes;
      for_elements(
          strips,
          [&](int64_t begin, int64_t end) {
            for (int64_t s = begin; s < end; ++s)
              pack_columns(b, left + s * lanes, columns, first, depth, packed_b + s * lanes * depth);
          },
          std::max<int64_t>(1, 32768 / (lanes * depth)));

      const int64_t row_strips = (rows + strip_rows - 1) / strip_rows;
      const int64_t groups = (strips + task_strips - 1) / task_strips;
      const auto run_tasks = [&](int64_t begin, int64_t end) {
        std::vector<C> packed_a(static_cast<size_t>(strip_rows * depth));
        alignas(64) C tile[strip_rows * lanes];
        for (int64_t task = begin; task < end; ++task) {
          const int64_t row = task / groups * strip_rows, first_strip = task % groups * task_strips;
          if (task == begin || task % groups == 0) pack_rows(a, row, rows, first, depth, packed_a.data());
          const int64_t height = std::min(strip_rows, rows - row);
          for (int64_t s = first_strip; s < std::min(strips, first_strip + task_strips); ++s) {
            multiply_tile(packed_a.data(), packed_b + s * lanes * depth, depth, tile);
            const int64_t there = std::min(lanes, width - s * lanes);
            for (int64_t i = 0; i < height; ++i) {
              Out* to = c.data + (row + i) * c.step + left + s * lanes;
              const C* from = tile + i * lanes;
              if (add)
                for (int64_t j = 0; j < there; ++j) to[j] = static_cast<Out>(static_cast<C>(to[j]) + from[j]);
              else
                for (int64_t j = 0; j < there; ++j) to[j] = static_cast<Out>(from[j]);
            }
          }
        }
      };
      for_elements(row_strips * groups, run_tasks,
                   std::max<int64_t>(1, 131072 / (strip_rows * lanes * std::min(strips, task_strips) * depth)));
    }
  }
}

template void gemm(int64_t, int64_t, int64_t, Matrix<const float>, Matrix<const float>, Matrix<float>, bool);
template void gemm(int64_t, int64_t, int64_t, Matrix<const double>, Matrix<const double>, Matrix<double>, bool);
template void gemm(int64_t, int64_t, int64_t, Matrix<const float16>, Matrix<const float16>, Matrix<float16>, bool);
template void gemm(int64_t, int64_t, int64_t, Matrix<const float16>, Matrix<const float16>, Matrix<float>, bool);
template void gemm(int64_t, int64_t, int64_t, Matrix<const bfloat16>, Matrix<const bfloat16>, Matrix<bfloat16>, bool);
template void gemm(int64_t, int64_t, int64_t, Matrix<const bfloat16>, Matrix<const bfloat16>, Matrix<float>, bool);

}  // namespace symbind::cpu_backend
