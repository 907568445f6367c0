// Divides values among their owners, the workers or the servers of a job, which update them. A large value whose
// optimizer is elementwise is cut into one piece per owner; any other value has one owner, chosen to balance the load.
// So every owner stores only its part of the optimizer state, and does its part of the arithmetic.
#pragma once

#include <cstdint>
#include <vector>

#include "symbind/core/ndarray.h"
#include "symbind/files/states.h"
#include "symbind/optim/update_rule.h"

namespace symbind {

// The elements [begin, end) of a value. A process has at most one share of each value.
struct Share {
  int owner = 0;
  int64_t begin = 0, end = 0;
  int64_t size() const { return end - begin; }
  friend bool operator==(const Share&, const Share&) = default;
};
using Shares = std::vector<Share>;

// The processes [first, first + count) of a job, which hold its keys.
struct Owners {
  int first = 0, count = 1;
  int end() const { return first + count; }
};

// Divides one value after the other. All workers do so in the same order, and get the same result.
class Division {
 public:
  explicit Division(const Owners& owners) : first_(owners.first), given_(static_cast<size_t>(owners.count), 0) {}
  Shares next(int64_t elements, UpdateUnit unit);

 private:
  int first_;
  std::vector<int64_t> given_;  // elements of whole values, per owner
};

// The share as an array: the value itself where it is whole, else a row of its elements.
NDArray part_of(const NDArray& value, const Share& share);

// The state of a share from that of the whole value, and back. Arrays whose size differs from the value's belong to
// every share.
StateTree cut_state(const StateTree& whole, const NDArray& value, const Share& share);
StateTree whole_state(const std::vector<StateTree>& parts, const NDArray& value, const Shares& shares);

}  // namespace symbind
