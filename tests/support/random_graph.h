// Randomly generated networks, for tests that compare two ways to run the same one. Values stay near one, and the
// shapes are small: channels that fill a block of 8 or 16, and ones that do not.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "symbind/exec/executor.h"
#include "symbind/graph/symbol.h"

namespace symbind::testing {

struct RandomGraph {
  Symbol symbol;
  NamedShapes inputs;                           // of the variables whose shape no operator determines
  std::map<std::string, std::string> grad_req;  // by argument; "null" for those that are left out
  bool grouped;                                 // operators are in two groups, "near" and "far"
  uint64_t seed;
};

// The same seed gives the same network. About `size` operators, with a few outputs; with large arrays several threads
// work on each.
RandomGraph random_graph(uint64_t seed, int size, bool large = false);

// Bound, with values for arguments, auxiliary states and gradients that are added to, by name and seed. All arrays are
// of one type.
ExecutorPtr bind_random_graph(const RandomGraph& graph, Context context, const SimpleBindOptions& options,
                              DType dtype = DType::float32);

}  // namespace symbind::testing
