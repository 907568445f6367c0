// The inference pass on a graph; infer.h has the functions of symbols.
#pragma once

#include "symbind/passes/graph.h"
#include "symbind/passes/infer.h"

namespace symbind {

// Tells a graph what is known of named variables; fails on a name it does not have. A dimension of 0 is one of length 0
// here: arrays without elements can be bound.
void give_shapes(Graph& graph, const NamedShapes& known);
void give_types(Graph& graph, const NamedTypes& known);

// The pass: fills graph.tensors from what they hold already (given shapes and types) and from what variables declare.
// Fails when a shape stays unknown; a type that nothing determines is float32.
void infer(Graph& graph);

}  // namespace symbind
