// Operators that are composed of others (ops/composition.h), on any device.
#pragma once

#include "symbind/ops/composition.h"
#include "symbind/passes/target.h"

namespace symbind {

// A variable for each input of the node.
ComposedInputs composed_inputs(const NodeView& node);
// The node as a network of those variables.
std::unique_ptr<Kernel> build_composed(const NodeView& node, const Symbol& network, const ComposedInputs& in);

// Adds an implementation of each to the table of a device.
void add_composed(ImplementationTable& table);

}  // namespace symbind
