#include "symbind/backend/cpu/row_dots.h"

#include <algorithm>

#include "symbind/backend/cpu/loops.h"

namespace symbind::cpu_backend {
namespace {

constexpr int64_t lanes = 16;
using Vector [[gnu::vector_size(64)]] = float;

[[gnu::always_inline]] inline Vector load(const float* from) {
  Vector vector;
  __builtin_memcpy(&vector, from, sizeof(vector));
  return vector;
}

// Halves are added to each other, so that the order is the same on every processor.
[[gnu::always_inline]] inline float sum_of(const Vector& vector) {
  using Half [[gnu::vector_size(32)]] = float;
  using Quarter [[gnu::vector_size(16)]] = float;
  const Half half = __builtin_shufflevector(vector, vector, 0, 1, 2, 3, 4, 5, 6, 7) +
                    __builtin_shufflevector(vector, vector, 8, 9, 10, 11, 12, 13, 14, 15);
  const Quarter quarter =
      __builtin_shufflevector(half, half, 0, 1, 2, 3) + __builtin_shufflevector(half, half, 4, 5, 6, 7);
  return (quarter[0] + quarter[2]) + (quarter[1] + quarter[3]);
}

// The lanes of the last vector of a row that the whole vectors before it have not covered.
using Mask [[gnu::vector_size(64)]] = int32_t;
Mask uncovered_lanes(int64_t inner) {
  Mask mask;
  for (int64_t lane = 0; lane < lanes; ++lane) mask[lane] = lane >= lanes - inner % lanes ? -1 : 0;
  return mask;
}

template <int64_t vectors>
void dots(const RowDots& size, const float* x, const float* matrix, const float* bias, float* y) {
  constexpr int64_t chains = vectors <= 2 ? 4 / vectors : 1;  // sums that do not wait for each other
  const int64_t inner = size.inner, last = inner - lanes;
  const Mask mask = uncovered_lanes(inner);
  const auto rows = [=](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const float* const w = matrix + row * inner;
      Vector sums[vectors][chains] = {};
      int64_t k = 0;
      const auto step = [&](int64_t at, int64_t chain) {
        const Vector factor = load(w + at);
        for (int64_t v = 0; v < vectors; ++v) sums[v][chain] += factor * load(x + v * inner + at);
      };
      for (; k + chains * lanes <= inner; k += chains * lanes)
        for (int64_t chain = 0; chain < chains; ++chain) step(k + chain * lanes, chain);
      for (; k + lanes <= inner; k += lanes) step(k, 0);
      if (k < inner) {
        const Vector factor = mask ? load(w + last) : Vector{};
        for (int64_t v = 0; v < vectors; ++v) sums[v][0] += factor * (mask ? load(x + v * inner + last) : Vector{});
      }
      for (int64_t v = 0; v < vectors; ++v) {
        Vector vector = sums[v][0];
        for (int64_t chain = 1; chain < chains; ++chain) vector += sums[v][chain];
        y[v * size.vector_step + row * size.row_step] = sum_of(vector) + (bias ? bias[row] : 0.0f);
      }
    }
  };
  constexpr int64_t products_worth_a_thread = 1 << 18;
  for_elements(size.rows, rows, std::max<int64_t>(1, products_worth_a_thread / (vectors * inner + 1)));
}

}  // namespace

void row_dots(const RowDots& size, const float* vectors, const float* matrix, const float* bias, float* y) {
  switch (size.vectors) {
    case 1:
      return dots<1>(size, vectors, matrix, bias, y);
    case 2:
      return dots<2>(size, vectors, matrix, bias, y);
    case 3:
      return dots<3>(size, vectors, matrix, bias, y);
    default:
      return dots<4>(size, vectors, matrix, bias, y);
  }
}

}  // namespace symbind::cpu_backend
