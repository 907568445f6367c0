#include "symbind/kvstore/shares.h"

#include <algorithm>

#include "symbind/core/error.h"

namespace symbind {
namespace {

constexpr int64_t smallest_piece = 4096;  // elements; smaller messages take no less time
constexpr int64_t alignment = 16;         // elements that share a word of a compressed gradient

}  // namespace

Shares Division::next(int64_t elements, UpdateUnit unit) {
  const auto owners = static_cast<int64_t>(given_.size());
  if (unit == UpdateUnit::sequence) return {{first_, 0, elements}};
  if (unit != UpdateUnit::element || elements < owners * smallest_piece || owners == 1) {
    const auto least = std::min_element(given_.begin(), given_.end());
    *least += elements;
    return {{first_ + static_cast<int>(least - given_.begin()), 0, elements}};
  }
  Shares shares;
  int64_t begin = 0;
  for (int64_t owner = 0; owner < owners; ++owner) {
    const int64_t end = owner + 1 == owners ? elements : elements * (owner + 1) / owners / alignment * alignment;
    shares.push_back({first_ + static_cast<int>(owner), begin, end});
    begin = end;
  }
  return shares;
}

NDArray part_of(const NDArray& value, const Share& share) {
  if (share.size() == value.size()) return value;
  return value.reshape({-1}).slice(share.begin, share.end);
}

StateTree cut_state(const StateTree& whole, const NDArray& value, const Share& share) {
  if (share.size() == value.size()) return whole;
  if (!whole.is_tuple)
    return whole.array && whole.array.size() == value.size() ? StateTree(part_of(whole.array, share).copy()) : whole;
  StateTree parts = whole;
  for (StateTree& part : parts.tuple) part = cut_state(part, value, share);
  return parts;
}

StateTree whole_state(const std::vector<StateTree>& parts, const NDArray& value, const Shares& shares) {
  if (shares.size() == 1) return parts.at(0);
  const StateTree& first = parts.at(0);
  if (first.is_tuple) {
    StateTree whole = first;
    for (size_t i = 0; i < first.tuple.size(); ++i) {
      std::vector<StateTree> items;
      for (const StateTree& part : parts) {
        require(part.tuple.size() == first.tuple.size(), "[kvstore] workers have states of different forms");
        items.push_back(part.tuple[i]);
      }
      whole.tuple[i] = whole_state(items, value, shares);
    }
    return whole;
  }
  if (!first.array || first.array.size() != shares[0].size()) return first;
  NDArray whole(value.shape(), cpu(), first.array.dtype());
  for (size_t i = 0; i < shares.size(); ++i) {
    require(bool(parts[i].array) && parts[i].array.size() == shares[i].size(),
            "[kvstore] workers have states of different sizes");
    parts[i].array.reshape({-1}).copyto(part_of(whole, shares[i]));
  }
  return whole;
}

}  // namespace symbind
