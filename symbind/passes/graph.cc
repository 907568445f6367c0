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
  std::unordered_map<const Node*, int> number;
  for (const NodePtr& node : topological_order(symbol.entries())) {
    std::vector<int> inputs;
    inputs.reserve(node->inputs.size());
    for (const Entry& input : node->inputs)
      inputs.push_back(graph.nodes[static_cast<size_t>(number.at(input.node.get()))].first_output + input.index);
    number[node.get()] = graph.append(node, std::move(inputs));
  }
  for (const Entry& output : symbol.entries())
    graph.outputs.push_back(graph.nodes[static_cast<size_t>(number.at(output.node.get()))].first_output + output.index);
  graph.net_outputs = graph.outputs.size();
  graph.forward_nodes = graph.nodes.size();
  return graph;
}

int Graph::append(NodePtr source, std::vector<int> inputs) {
  GraphNode node;
  node.outputs = source->is_variable() ? 1 : static_cast<int>(source->op->output_count(source->params.get()));
  node.source = std::move(source);
  node.inputs = std::move(inputs);
  node.first_output = static_cast<int>(tensors.size());
  const int number = static_cast<int>(nodes.size());
  tensors.resize(tensors.size() + static_cast<size_t>(node.outputs));
  producer.resize(tensors.size(), number);
  nodes.push_back(std::move(node));
  return number;
}

std::vector<bool> shape_only_inputs(const GraphNode& node) {
  std::vector<bool> result(node.inputs.size(), false);
  if (node.is_variable() || node.op().shape_only.empty()) return result;
  const Names &only = node.op().shape_only, names = node.op().all_inputs(node.source->params.get());
  for (size_t i = 0; i < result.size(); ++i) result[i] = std::find(only.begin(), only.end(), names[i]) != only.end();
  return result;
}

}  // namespace symbind
