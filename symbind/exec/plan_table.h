// A plan as a table that a person can read: what runs, how, on which memory, and for how long.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "symbind/exec/operator_cost.h"
#include "symbind/passes/graph.h"
#include "symbind/passes/plan_memory.h"

namespace symbind {

// How long the steps of a plan took. The first run of a part includes initialization of libraries and of memory pages:
// it is discarded as soon as there is a second.
struct StepTimes {
  std::vector<double> seconds;  // by step, over all runs
  uint64_t forward_runs = 0, backward_runs = 0;
};

// Sizes are in bytes, with K, M, G for powers of 1024; types other than float32 are after the shape; columns that
// would be empty are left out. Times are means per run.
std::string plan_table(const Graph& graph, const MemoryPlan& memory, const StepTimes* times = nullptr);

// What each operator of a timed plan costs in one run, the slowest first.
std::vector<OperatorCost> operator_costs(const Graph& graph, const MemoryPlan& memory, const StepTimes& times);

// "1.50M": three digits, as the table prints sizes and offsets.
std::string short_bytes(size_t bytes);

}  // namespace symbind
