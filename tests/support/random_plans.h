// Plans of randomly generated networks, against the plainest plan of the same network.
#pragma once

#include <string>

#include <gtest/gtest.h>

#include "symbind/exec/executor.h"

#include "tests/support/random_graph.h"

namespace symbind::testing {

// How many operators network `number` of a series has; some are on arrays large enough for several threads.
RandomGraph numbered_graph(uint64_t number);

// Which switches are on differs from graph to graph; mostly all are.
SimpleBindOptions options_for(const RandomGraph& graph, Context context);
std::string described(const CompileOptions& options);

// Does a plan with these options give the numbers of the plainest plan? Every other time in float64, which the
// libraries' and vectorised kernels leave to the plain ones. `slack`: Reference::agrees_with.
::testing::AssertionResult agrees(const RandomGraph& graph, Context context, const SimpleBindOptions& options,
                                  double slack = 1);
// Does it give those numbers when every step is monitored?
::testing::AssertionResult agrees_monitored(const RandomGraph& graph, Context context, const SimpleBindOptions& options,
                                            double slack = 1);
// Do two devices give the same numbers?
::testing::AssertionResult agrees_between(const RandomGraph& graph, Context context, Context other);

// The shortest prefix of the network that fails with one output; the whole network if none does.
RandomGraph shrunk(const RandomGraph& graph, Context context, const SimpleBindOptions& options);

}  // namespace symbind::testing
