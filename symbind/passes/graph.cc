#include "symbind/passes/graph.h"

#include <algorithm>
#include <unordered_map>

namespace symbind {

std::string_view name_of(Layout layout) {
  constexpr std::string_view names[] = {"plain", "channels last", "blocked 8", "blocked 16"};
  return names[static_cast<size_t>(layout)];
}

bool same_order(const Shape& shape, Layout a, Layout b) {
  if (a == b) return true;
  const bool single_channel = shape.rank() >= 2 && shape[1] == 1, single_position = shape.size(2, shape.rank()) == 1;
  return single_position || (single_channel && block_of(a) == 1 && block_of(b) == 1);
}

Graph Graph::from(const Symbol& symbol) {
  Graph graph;
  std::unordered_map<const Node*, TensorId> first_output;
  for (const NodePtr& node : topological_order(symbol.entries())) {
    std::vector<TensorId> inputs;
    inputs.reserve(node->inputs.size());
    for (const Entry& input : node->inputs) inputs.push_back(first_output.at(input.node.get()) + input.index);
    first_output[node.get()] = graph.append(node, std::move(inputs)).first_output;
  }
  for (const Entry& output : symbol.entries())
    graph.outputs.push_back(first_output.at(output.node.get()) + output.index);
  graph.net_outputs = graph.outputs.size();
  graph.forward_nodes = graph.nodes.size();
  return graph;
}

GraphNode& Graph::append(NodePtr source, std::vector<TensorId> inputs) {
  GraphNode& node = nodes.emplace_back();
  node.id = NodeId{static_cast<int32_t>(nodes.size() - 1)};
  node.outputs = source->is_variable() ? 1 : static_cast<int>(source->op->output_count(source->params.get()));
  node.source = std::move(source);
  node.inputs = std::move(inputs);
  node.first_output = TensorId{static_cast<int32_t>(tensors.size())};
  tensors.resize(tensors.size() + static_cast<size_t>(node.outputs));
  producers.resize(tensors.size(), node.id);
  return node;
}

PerTensor<bool> updated_tensors(const Graph& graph) {
  PerTensor<bool> updated(graph.tensors.size(), false);
  for (const GraphNode& node : graph.nodes) {
    if (node.is_variable()) continue;
    const std::vector<bool> inputs = node.op().updated_inputs(node.source->params.get(), node.inputs.size());
    for (size_t k = 0; k < inputs.size(); ++k)
      if (inputs[k]) updated[node.inputs[k]] = true;
  }
  return updated;
}

std::vector<bool> shape_only_inputs(const GraphNode& node) {
  std::vector<bool> result(node.inputs.size(), false);
  if (node.is_variable() || node.op().shape_only.empty()) return result;
  const Names &only = node.op().shape_only, names = node.op().all_inputs(node.source->params.get());
  for (size_t i = 0; i < result.size(); ++i) result[i] = std::find(only.begin(), only.end(), names[i]) != only.end();
  return result;
}

NodeShapes shapes_of(const Graph& graph, const GraphNode& node) {
  NodeShapes shapes;
  for (const TensorId input : node.inputs) shapes.inputs.push_back(graph.tensor(input).shape);
  for (int i = 0; i < node.outputs; ++i) shapes.outputs.push_back(graph.tensor(node.first_output + i).shape);
  return shapes;
}

double multiply_adds(const Graph& graph, const GraphNode& node) {
  if (node.is_variable() || !node.op().multiply_adds) return 0;
  const NodeShapes shapes = shapes_of(graph, node);
  return node.op().multiply_adds(node.source->params.get(), shapes.inputs, shapes.outputs);
}

}  // namespace symbind
