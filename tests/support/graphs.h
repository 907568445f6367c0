// Graphs for tests of single passes.
#pragma once

#include <string>
#include <vector>

#include "symbind/passes/gradient.h"
#include "symbind/passes/graph.h"
#include "symbind/passes/infer_graph.h"
#include "symbind/passes/passes.h"

namespace symbind::testing {

struct Training {
  Graph graph;
  GradientPorts ports;
  std::vector<std::string> requested;  // names of the arguments with a gradient, in order
};

// A network with its backward part, shapes inferred; gradients of all arguments but those left out.
Training training_graph(const Symbol& symbol, const NamedShapes& shapes, const std::vector<std::string>& without = {},
                        GradReq req = GradReq::write);
Graph inference_graph(const Symbol& symbol, const NamedShapes& shapes);

// What comes before fuse in the sequence of passes, for a graph on one device.
void prepare_to_fuse(Graph& graph, Context context);

// A node by name, or none.
NodeId find_node(const Graph& graph, const std::string& name);
int count_op(const Graph& graph, const std::string& op);
const GraphNode& node_of(const Graph& graph, const std::string& op);  // the first one; fails if there is none

// For every tensor the outside array that holds it, or -1: each variable, each output, each gradient (with `add` the
// old value and the new one share an array).
PerTensor<int> outside_arrays(const Graph& graph, const GradientPorts* ports = nullptr);

// Operators that only passes create.
const std::vector<std::string>& operators_of_passes();

// Inputs come before their users, the producers are correct, and outputs are tensors of the graph.
void expect_consistent(const Graph& graph);

}  // namespace symbind::testing
