// Finds bugs in memory plans: memory that no kernel may read is filled with bytes that are NaN in every floating type,
// so that a kernel that reads too early, too late or out of bounds shows in the results.
#pragma once

#include <vector>

#include "symbind/passes/plan_memory.h"

namespace symbind {

// Is SYMBIND_POISON=1 set? Every plan of the process is poisoned then.
bool poison_everything();

struct ArenaRange {
  int arena;
  size_t begin, end;
};

// Fails when the plan reaches beyond its arenas. Computed only from the graph and the locations, independently of the
// code that assigned them.
class Poison {
 public:
  Poison(const Graph& graph, const MemoryPlan& memory);

  // Scratch: filled before the node runs.
  const std::vector<ArenaRange>& before(NodeId node) const { return before_[node]; }
  // Memory that is no longer read and not reused yet: filled after the node.
  const std::vector<ArenaRange>& after(NodeId node) const { return after_[node]; }

 private:
  PerNode<std::vector<ArenaRange>> before_, after_;
};

// Queues the filling of memory of a device with poison.
void fill_with_poison(Context context, void* data, size_t bytes);

}  // namespace symbind
