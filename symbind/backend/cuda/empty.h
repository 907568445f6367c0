// Nodes with empty arrays, which kernels and libraries need not consider.
#pragma once

#include "symbind/passes/target.h"

namespace symbind::cuda_backend {

// For a node of any operator whose outputs are all empty: nothing is computed.
Implementation nothing_implementation();

// The gradients of weights, which are 0 where the out_grad is empty.
void add_empty(ImplementationTable& table);

}  // namespace symbind::cuda_backend
