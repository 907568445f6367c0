// The kernels of one node by a named implementation, run on memory of their own.
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

}  // namespace symbind::testing
