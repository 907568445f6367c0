// Sums and maxima whose order lets vector instructions compute them: number i goes to lane i % lanes, and the lanes are
// combined at the end. Sums are in double precision.
#pragma once

#include <cstdint>
#include <cstring>

#include "symbind/backend/cpu/half.h"

namespace symbind::cpu_backend {

inline constexpr int64_t sum_lanes = 16;

template <class Term>
[[gnu::always_inline]] inline double sum_in_lanes(int64_t count, const Term& term) {
  double lanes[sum_lanes] = {};
  int64_t i = 0;
  for (; i + sum_lanes <= count; i += sum_lanes)
#pragma GCC unroll 16
    for (int64_t lane = 0; lane < sum_lanes; ++lane) lanes[lane] += static_cast<double>(term(i + lane));
  double sum = 0;
  for (; i < count; ++i) sum += static_cast<double>(term(i));
  for (const double lane : lanes) sum += lane;
  return sum;
}

// ---- Numbers that are contiguous ------------------------------------------------------------------------------------
// Four independent vectors at a time. Half precision is computed in float.

template <class C>
struct VectorOf {
  using Type [[gnu::vector_size(32)]] = C;
};
template <class C>
using VectorOf32 = typename VectorOf<C>::Type;

template <class T>
[[gnu::always_inline]] inline VectorOf32<compute_type<T>> load_widened(const T* x) {
  using C = compute_type<T>;
  constexpr int lanes = 32 / sizeof(C);
  C numbers[lanes];
  for (int lane = 0; lane < lanes; ++lane) numbers[lane] = widened(x[lane]);
  VectorOf32<C> vector;
  std::memcpy(&vector, numbers, sizeof(vector));
  return vector;
}

// Combines the lanes of a vector, in pairs.
template <class Wide, class C, class Join>
[[gnu::always_inline]] inline Wide across_lanes(VectorOf32<C> vector, const Join& join) {
  constexpr int lanes = 32 / sizeof(C);
  C numbers[lanes];
  std::memcpy(numbers, &vector, sizeof(vector));
  Wide left = join(static_cast<Wide>(numbers[0]), static_cast<Wide>(numbers[1]));
  left = join(left, join(static_cast<Wide>(numbers[2]), static_cast<Wide>(numbers[3])));
  if constexpr (lanes == 4) return left;
  const Wide right = join(static_cast<Wide>(numbers[lanes - 4]), static_cast<Wide>(numbers[lanes - 3]));
  return join(left, join(right, join(static_cast<Wide>(numbers[lanes - 2]), static_cast<Wide>(numbers[lanes - 1]))));
}

// The largest of `least` and map(x[0]) to map(x[count - 1]). NaN is ignored, except as `least`. `map` is a function of
// numbers and of vectors of them.
template <class T, class Map>
[[gnu::always_inline]] inline compute_type<T> largest_of(const T* x, int64_t count, compute_type<T> least,
                                                         const Map& map) {
  using C = compute_type<T>;
  constexpr int64_t lanes = 32 / sizeof(C);
  const auto larger = [](auto a, auto b) __attribute__((always_inline)) { return b > a ? b : a; };
  if (count < lanes) {
    for (int64_t i = 0; i < count; ++i) least = larger(least, static_cast<C>(map(widened(x[i]))));
    return least;
  }
  VectorOf32<C> most[4];
  for (auto& each : most) each = VectorOf32<C>{} + least;
  int64_t i = 0;
  for (; i + 4 * lanes <= count; i += 4 * lanes)
    for (int k = 0; k < 4; ++k) most[k] = larger(most[k], map(load_widened(x + i + k * lanes)));
  for (; i + lanes <= count; i += lanes) most[0] = larger(most[0], map(load_widened(x + i)));
  // The last vector overlaps the previous one: no scalar remainder.
  most[1] = larger(most[1], map(load_widened(x + count - lanes)));
  return across_lanes<C, C>(larger(larger(most[0], most[1]), larger(most[2], most[3])), larger);
}

// The sum of x[0] to x[count - 1]: up to 16 numbers of a lane are added in the type they are computed in, these sums in
// double.
template <class T>
[[gnu::always_inline]] inline double sum_of(const T* x, int64_t count) {
  using C = compute_type<T>;
  constexpr int64_t lanes = 32 / sizeof(C), block = 16 * 4 * lanes;
  if constexpr (std::is_same_v<T, float16>) {
    double all = 0;
    for (int64_t begin = 0; begin < count; begin += block) {
      float numbers[block];
      const int64_t some = count - begin < block ? count - begin : block;
      widen(x + begin, numbers, some);
      all += sum_of(numbers, some);
    }
    return all;
  }
  const auto add = [](double a, double b) __attribute__((always_inline)) { return a + b; };
  double total = 0;
  for (int64_t begin = 0; begin < count; begin += block) {
    const int64_t end = begin + block < count ? begin + block : count;
    VectorOf32<C> sums[4] = {};
    int64_t i = begin;
    for (; i + 4 * lanes <= end; i += 4 * lanes)
      for (int k = 0; k < 4; ++k) sums[k] += load_widened(x + i + k * lanes);
    for (; i + lanes <= end; i += lanes) sums[0] += load_widened(x + i);
    C rest = 0;
    for (; i < end; ++i) rest += widened(x[i]);
    total += across_lanes<double, C>((sums[0] + sums[1]) + (sums[2] + sums[3]), add) + static_cast<double>(rest);
  }
  return total;
}

}  // namespace symbind::cpu_backend
