// How many elements of an array are in each of a number of intervals.
#pragma once

#include "symbind/graph/builder.h"

namespace SYMBIND_API symbind {

// Outputs: the counts (int64) and the edges of the bins. With bin_cnt and range the bins are equal; otherwise a second
// input, bins, has the edges in ascending order. The last bin includes both of its edges; elements outside are not
// counted.
struct Histogram {
  std::optional<int64_t> bin_cnt = {};
  std::vector<double> range = {};
};
inline constexpr Builder<Histogram> histogram;

}  // namespace symbind
