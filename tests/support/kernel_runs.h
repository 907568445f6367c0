// The kernels of one node by a named implementation, run on separate memory.
#pragma once

#include <string>
#include <vector>

#include "symbind/passes/target.h"

#include "tests/support/test_node.h"

namespace symbind::testing {

// The implementation of that name on a CPU; fails if there is none.
const Implementation& implementation(const OpDef& op, const std::string& name);

// The outputs. Memory that the kernel must assign holds NaN before it runs.
std::vector<std::vector<double>> run(const TestNode<double>& node, const Implementation& implementation);

// The implementation accepts the node and agrees with the plain one: each element within `tolerance` of the largest of
// its array. Nodes that are refused only for the reason `slow` are compared anyway.
void expect_same_as_plain(const TestNode<double>& node, const std::string& name, double tolerance,
                          const std::string& what, const std::string& slow = "");

}  // namespace symbind::testing
