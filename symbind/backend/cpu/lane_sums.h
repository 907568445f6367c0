// Sums in double precision whose order lets vector instructions compute them: number i goes to lane i % 16, and the
// lanes are added at the end.
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

}  // namespace symbind::cpu_backend
