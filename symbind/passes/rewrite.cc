#include "symbind/passes/rewrite.h"

#include <numeric>

namespace symbind {

Rewriter::Rewriter(const Graph& old) : old_(old), map_(old.tensors.size(), -1) {
  graph_.nodes.reserve(old.nodes.size() + 16);
  graph_.tensors.reserve(old.tensors.size() + 16);
  graph_.is_train = old.is_train;
  graph_.random_slots = old.random_slots;
  graph_.net_outputs = old.net_outputs;
  graph_.output_contexts = old.output_contexts;
  graph_.objects = old.objects;
}

GraphNode& Rewriter::copy(const GraphNode& node) {
  std::vector<int> inputs;
  inputs.reserve(node.inputs.size());
  for (const int input : node.inputs) inputs.push_back(now(input));
  return replace(node, node.source, std::move(inputs));
}

GraphNode& Rewriter::replace(const GraphNode& node, NodePtr source, std::vector<int> inputs) {
  std::vector<int> outputs(static_cast<size_t>(node.outputs));
  std::iota(outputs.begin(), outputs.end(), node.first_output);
  return replace(node, std::move(source), std::move(inputs), outputs);
}

GraphNode& Rewriter::replace(const GraphNode& node, NodePtr source, std::vector<int> inputs,
                             const std::vector<int>& stands_for) {
  GraphNode& made = graph_.nodes[static_cast<size_t>(graph_.append(std::move(source), std::move(inputs)))];
  made.context = node.context;
  made.random_slot = node.random_slot;
  made.implementation = node.implementation;
  made.kernel = node.kernel;
  int output = made.first_output;
  for (const int old : stands_for) {
    graph_.tensors[static_cast<size_t>(output)] = old_.tensors[static_cast<size_t>(old)];
    redirect(old, output++);
  }
  return made;
}

int Rewriter::insert(const OpDef& op, std::shared_ptr<const void> params, int input, const std::string& suffix,
                     const Context& context) {
  const GraphNode& before = graph_.nodes[static_cast<size_t>(graph_.producer[static_cast<size_t>(input)])];
  auto source = std::make_shared<Node>();
  source->op = &op;
  source->name = before.source->name + suffix;
  source->params = std::move(params);
  source->inputs = {};  // the graph's own list of inputs is the one that counts from here on
  GraphNode& made = graph_.nodes[static_cast<size_t>(graph_.append(std::move(source), {input}))];
  made.context = context;
  graph_.tensors[static_cast<size_t>(made.first_output)] = graph_.tensors[static_cast<size_t>(input)];
  return made.first_output;
}

Graph Rewriter::finish() {
  for (const int output : old_.outputs) graph_.outputs.push_back(now(output));
  return std::move(graph_);
}

}  // namespace symbind
