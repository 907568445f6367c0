// Which worker updates what. A large value whose optimizer works on elements is cut into a piece for each worker; any
// other has one owner, chosen so that all get about as much. So every worker keeps its part of the optimizer's states
// alone, and does its part of the arithmetic.
#pragma once

#include <cstdint>
#include <vector>

#include "symbind/core/ndarray.h"
#include "symbind/files/states.h"
#include "symbind/optim/update_rule.h"

namespace symbind {

// The elements [begin, end) of a value. A worker has at most one share of each value.
struct Share {
  int owner = 0;
  int64_t begin = 0, end = 0;
  int64_t size() const { return end - begin; }
  friend bool operator==(const Share&, const Share&) = default;
};
using Shares = std::vector<Share>;

// Divides one value after the other. All workers do so in the same order, and come to the same result.
class Division {
 public:
  explicit Division(int workers) : given_(static_cast<size_t>(workers), 0) {}
  Shares next(int64_t elements, UpdateUnit unit);

 private:
  std::vector<int64_t> given_;  // elements of whole values, per worker
};

// The share as an array: the value itself where it is whole, else a row of its elements.
NDArray part_of(const NDArray& value, const Share& share);

// The state of a share from that of the whole value, and back. Arrays of other sizes than the value's belong to every
// share.
StateTree cut_state(const StateTree& whole, const NDArray& value, const Share& share);
StateTree whole_state(const std::vector<StateTree>& parts, const NDArray& value, const Shares& shares);

}  // namespace symbind
