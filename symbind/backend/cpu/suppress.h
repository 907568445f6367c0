// Non-maximum suppression of boxes that are in the order of their scores.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "symbind/backend/boxes.h"

namespace symbind::cpu_backend {

// The indices of the boxes that no better remaining one overlaps, at most `most`, in order. overlaps(a, b): does box a
// suppress box b, which comes after it?
template <class Overlaps>
std::vector<int32_t> suppress(int64_t count, int64_t most, const Overlaps& overlaps) {
  std::vector<int32_t> left;
  for (int64_t i = 0; i < count && static_cast<int64_t>(left.size()) < most; ++i) {
    bool dropped = false;
    for (size_t k = 0; k < left.size() && !dropped; ++k) dropped = overlaps(left[k], i);
    if (!dropped) left.push_back(static_cast<int32_t>(i));
  }
  return left;
}

// The indices of the `most` highest of `count` scores in descending order, equal ones in the order of their indices.
template <class Score>
std::vector<int32_t> best_first(int64_t count, int64_t most, const Score& score) {
  using Key = decltype(boxes::descending_key(score(0)));
  std::vector<std::pair<Key, int32_t>> keys(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i)
    keys[static_cast<size_t>(i)] = {boxes::descending_key(score(i)), static_cast<int32_t>(i)};
  const auto end = keys.begin() + std::min(most, count);
  if (end != keys.end()) std::nth_element(keys.begin(), end, keys.end());
  std::sort(keys.begin(), end);
  std::vector<int32_t> order;
  for (auto key = keys.begin(); key != end; ++key) order.push_back(key->second);
  return order;
}

}  // namespace symbind::cpu_backend
