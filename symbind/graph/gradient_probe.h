// What an operator's gradient reads, and for which inputs it computes something.
#pragma once

#include <cstddef>
#include <set>

#include "symbind/graph/node.h"

namespace symbind {

struct ProbedGradient {
  bool reads_out_grad = false;
  std::set<size_t> inputs_with_gradient;
};
// Runs the gradient and discards what it builds. Of an operator that has one.
ProbedGradient probe_gradient(const Node& node);

// A loss computes gradients without reading the one of its output: backward starts there.
bool is_loss(const Node& node);
// Does the node propagate a gradient to its inputs? Not a loss, and not a node without a gradient.
bool passes_gradient(const Node& node);

}  // namespace symbind
