// The one pattern so far: an activation that alone reads the result of a matrix product or a convolution goes into it.
// In training this is possible whenever the activation's gradient is written over its output, since then nobody reads
// the value in between.
#include <vector>

#include "symbind/ops/activation.h"
#include "symbind/ops/conv.h"
#include "symbind/ops/fully_connected.h"
#include "symbind/passes/passes.h"
#include "symbind/passes/rewrite.h"

namespace symbind {
namespace {

// The operator that does both, or none.
template <class Plain, class Fused>
NodePtr fused_source(const Node& before, const Node& activation_node) {
  Fused params{*static_cast<const Plain*>(before.params.get()),
               static_cast<const Activation*>(activation_node.params.get())->act_type};
  auto source = std::make_shared<Node>();
  source->op = &op_of<Fused>();
  source->name = activation_node.name;
  source->attributes = before.attributes;
  source->params = std::make_shared<Fused>(std::move(params));
  return source;
}

NodePtr with_activation(const Node& before, const Node& activation_node) {
  if (before.op == &op_of<FullyConnected>())
    return fused_source<FullyConnected, FullyConnectedActivation>(before, activation_node);
  if (before.op == &op_of<Convolution>())
    return fused_source<Convolution, ConvolutionActivation>(before, activation_node);
  return nullptr;
}

}  // namespace

void fuse(Graph& graph) {
  std::vector<int> readers(graph.tensors.size(), 0);
  for (const GraphNode& node : graph.nodes)
    for (const int input : node.inputs) ++readers[static_cast<size_t>(input)];
  for (const int output : graph.outputs) ++readers[static_cast<size_t>(output)];

  std::vector<bool> absorbed(graph.nodes.size(), false);
  std::vector<NodePtr> becomes(graph.nodes.size());
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const GraphNode& node = graph.nodes[i];
    if (node.is_variable() || node.source->op != &op_of<Activation>()) continue;
    const auto before_number = static_cast<size_t>(graph.producer[static_cast<size_t>(node.inputs[0])]);
    const GraphNode& before = graph.nodes[before_number];
    if (before.is_variable() || readers[static_cast<size_t>(node.inputs[0])] != 1 || before.context != node.context)
      continue;
    becomes[i] = with_activation(*before.source, *node.source);
    if (becomes[i]) absorbed[before_number] = true;
  }

  Rewriter rewriter(graph);
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    if (i == graph.forward_nodes) rewriter.end_of_forward();
    const GraphNode& node = graph.nodes[i];
    if (absorbed[i]) continue;
    if (!becomes[i]) {
      rewriter.copy(node);
      continue;
    }
    std::vector<int> inputs;
    for (const int input : graph.nodes[static_cast<size_t>(graph.producer[static_cast<size_t>(node.inputs[0])])].inputs)
      inputs.push_back(rewriter.now(input));
    rewriter.replace(node, becomes[i], std::move(inputs));
  }
  if (graph.forward_nodes == graph.nodes.size()) rewriter.end_of_forward();
  graph = rewriter.finish();
}

}  // namespace symbind
