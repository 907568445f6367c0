// The inference pass on a graph; infer.h has the functions of symbols.
#pragma once

#include "symbind/passes/graph.h"
#include "symbind/passes/infer.h"

namespace symbind {

// Sets the known shapes or types of named variables; fails on an unknown name. A dimension of 0 means length 0 here:
// arrays without elements can be bound.
void set_shapes(Graph& graph, const NamedShapes& known);
void set_types(Graph& graph, const NamedTypes& known);

// The pass: completes graph.tensors from the shapes and types already set and from the attributes of variables. Fails
// if a shape stays unknown; a type that nothing determines is float32.
void infer(Graph& graph);

}  // namespace symbind
