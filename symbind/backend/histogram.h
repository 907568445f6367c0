// The bins of a histogram, for every device.
#pragma once

#include <cstdint>

namespace symbind {

// Edge i of `bins` equal ones.
constexpr double bin_edge(double low, double high, int64_t bins, int64_t i) {
  return i == bins ? high : low + static_cast<double>(i) * ((high - low) / static_cast<double>(bins));
}

// The bin of a value, -1: none. edge(i) is ascending; a bin includes its lower edge, the last one both.
template <class C, class Edge>
constexpr int64_t bin_of(C value, int64_t bins, const Edge& edge) {
  if (!(value >= edge(0) && value <= edge(bins))) return -1;
  int64_t low = 0, high = bins;  // edge(low) ≤ value, and value < edge(high) or high is the last
  while (high - low > 1) {
    const int64_t middle = low + (high - low) / 2;
    (edge(middle) <= value ? low : high) = middle;
  }
  return low;
}

}  // namespace symbind
