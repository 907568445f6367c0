// Sums and maxima whose order lets vector instructions compute them: number i goes to lane i % lanes, and the lanes
// meet at the end. Sums are in double precision.
#pragma once

#include <cstdint>

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

// Lanes of loops that are no longer than this are several vectors, so that none waits for the one before.
inline constexpr int64_t many_lanes = 64;

// The largest of `least` and term(0) to term(count - 1). NaN is left out, except as `least`.
template <class C, class Term>
[[gnu::always_inline]] inline C largest_in_lanes(int64_t count, C least, const Term& term) {
  C lanes[many_lanes];
  for (C& lane : lanes) lane = least;
  int64_t i = 0;
  for (; i + many_lanes <= count; i += many_lanes)
    for (int64_t lane = 0; lane < many_lanes; ++lane) {
      const C value = term(i + lane);
      lanes[lane] = value > lanes[lane] ? value : lanes[lane];
    }
  for (int64_t lane = 0; i < count; ++i, ++lane) {
    const C value = term(i);
    lanes[lane] = value > lanes[lane] ? value : lanes[lane];
  }
  for (int64_t width = many_lanes / 2; width > 0; width /= 2)
    for (int64_t lane = 0; lane < width; ++lane)
      lanes[lane] = lanes[lane + width] > lanes[lane] ? lanes[lane + width] : lanes[lane];
  return lanes[0];
}

// The sum of term(0) to term(count - 1): eight numbers a lane in type C, these sums in double.
template <class C, class Term>
[[gnu::always_inline]] inline double sum_in_short_runs(int64_t count, const Term& term) {
  constexpr int64_t run = 8;
  double sum = 0;
  for (int64_t begin = 0; begin < count; begin += many_lanes * run) {
    C lanes[many_lanes] = {};
    const int64_t end = begin + many_lanes * run < count ? begin + many_lanes * run : count;
    int64_t i = begin;
    for (; i + many_lanes <= end; i += many_lanes)
      for (int64_t lane = 0; lane < many_lanes; ++lane) lanes[lane] += term(i + lane);
    for (int64_t lane = 0; i < end; ++i, ++lane) lanes[lane] += term(i);
    for (int64_t width = many_lanes / 2; width > 8; width /= 2)
      for (int64_t lane = 0; lane < width; ++lane) lanes[lane] += lanes[lane + width];
    for (int64_t lane = 0; lane < 16; ++lane) sum += static_cast<double>(lanes[lane]);
  }
  return sum;
}

}  // namespace symbind::cpu_backend
