// Shapes and types, forwards and backwards through a network until nothing new is learnt.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "symbind/passes/graph.h"

namespace symbind {

using NamedShapes = std::map<std::string, Shape>;
using NamedTypes = std::map<std::string, DType>;

// In the order of list_arguments(), list_outputs(), list_auxiliary_states(); unknown dimensions are 0, a shape of
// unknown rank has none.
struct InferredShapes {
  std::vector<std::vector<int64_t>> args, outputs, aux;
  bool complete = false;
};
struct InferredTypes {
  std::vector<DType> args, outputs, aux;
  bool complete = false;
};

// Dimensions that are 0 are unknown. infer_shape fails when something stays unknown, and says what; infer_shape_partial
// does not.
InferredShapes infer_shape(const Symbol& symbol, const NamedShapes& known);
InferredShapes infer_shape_partial(const Symbol& symbol, const NamedShapes& known);
InferredTypes infer_type(const Symbol& symbol, const NamedTypes& known);

// Tells a graph what is known of named variables; fails on a name it does not have. A dimension of 0 is one of length 0
// here: arrays without elements can be bound.
void give_shapes(Graph& graph, const NamedShapes& known);
void give_types(Graph& graph, const NamedTypes& known);

// The pass: fills graph.tensors from what they hold already (given shapes and types) and from what variables declare.
// Fails when a shape stays unknown; a type that nothing determines is float32.
void infer(Graph& graph);

}  // namespace symbind
