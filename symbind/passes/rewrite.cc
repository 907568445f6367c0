#include "symbind/passes/rewrite.h"

namespace symbind {

Rewriter::Rewriter(const Graph& old) : old_(old), map_(old.tensors.size(), TensorId::none) {
  graph_.nodes.reserve(old.nodes.size() + 16);
  graph_.tensors.reserve(old.tensors.size() + 16);
  graph_.is_train = old.is_train;
  graph_.random_slots = old.random_slots;
  graph_.net_outputs = old.net_outputs;
  graph_.output_contexts = old.output_contexts;
  graph_.objects = old.objects;
}

GraphNode& Rewriter::copy(const GraphNode& node) {
  std::vector<TensorId> inputs;
  inputs.reserve(node.inputs.size());
  for (const TensorId input : node.inputs) inputs.push_back(now(input));
  return replace(node, node.source, std::move(inputs));
}

GraphNode& Rewriter::replace(const GraphNode& node, NodePtr source, std::vector<TensorId> inputs) {
  std::vector<TensorId> outputs;
  for (int i = 0; i < node.outputs; ++i) outputs.push_back(node.first_output + i);
  return replace(node, std::move(source), std::move(inputs), outputs);
}

GraphNode& Rewriter::replace(const GraphNode& node, NodePtr source, std::vector<TensorId> inputs,
                             const std::vector<TensorId>& replaced) {
  GraphNode& made = graph_.append(std::move(source), std::move(inputs));
  made.context = node.context;
  made.random_slot = node.random_slot;
  made.implementation = node.implementation;
  made.kernel = node.kernel;
  for (size_t i = 0; i < replaced.size(); ++i) {
    const TensorId output = made.first_output + static_cast<int>(i);
    graph_.tensor(output) = old_.tensor(replaced[i]);
    redirect(replaced[i], output);
  }
  return made;
}

TensorId Rewriter::insert(const OpDef& op, std::shared_ptr<const void> params, TensorId input,
                          const std::string& suffix, const Context& context) {
  const GraphNode& before = graph_.producer(input);
  auto source = std::make_shared<Node>();
  source->op = &op;
  source->name = before.source->name + suffix;
  source->params = std::move(params);
  source->inputs = {};  // from now on only the graph's own list of inputs is used
  GraphNode& made = graph_.append(std::move(source), {input});
  made.context = context;
  graph_.tensor(made.first_output) = graph_.tensor(input);
  return made.first_output;
}

Graph Rewriter::finish() {
  for (const TensorId output : old_.outputs) graph_.outputs.push_back(now(output));
  return std::move(graph_);
}

}  // namespace symbind
