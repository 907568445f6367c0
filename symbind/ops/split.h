// An array split along an axis at given indices.
#pragma once

#include "symbind/graph/builder.h"

namespace SYMBIND_API symbind {

// With sections > 0 that many equal parts; else part i starts at indices[i] and ends at the next index, or at the end
// of the axis. The first index is 0.
struct SplitV2 {
  Required<Tuple> indices = {};
  int64_t axis = 1;
  bool squeeze_axis = false;
  int64_t sections = 0;
};
inline constexpr Builder<SplitV2> split_v2;

// The begin and end of each part along an axis of known extent; fails with `where` if one is out of range.
struct SplitRange {
  int64_t begin, end;
};
std::vector<SplitRange> ranges_of(const SplitV2& params, int64_t extent, const std::string& where);

}  // namespace symbind
