// FullyConnected reads its weight transposed, for which a product of few rows pays as much as for the multiplying. The
// weight that the steps of a recurrent network share is transposed once, and read as it then lies.
#include <map>

#include "symbind/ops/fully_connected.h"
#include "symbind/ops/matrix.h"
#include "symbind/passes/fuse.h"
#include "symbind/passes/rewrite.h"
#include "symbind/passes/target.h"

namespace symbind {
namespace {

constexpr int least_readers = 4;
constexpr int64_t most_rows = 256;  // with more, a product has better things to wait for

bool is_candidate(const Graph& graph, const GraphNode& node) {
  const auto* params = params_if<FullyConnected>(node);
  if (!params || !runs_on_device(op_of<FullyConnectedTransposed>(), node.context)) return false;
  return producer_of(graph, node.inputs[1]).context == node.context &&
         size_of(*params, graph.tensors[static_cast<size_t>(node.inputs[0])].shape).rows <= most_rows;
}

}  // namespace

void transpose_weights(Graph& graph) {
  std::map<int, int> readers;  // by weight
  for (const GraphNode& node : graph.nodes)
    if (is_candidate(graph, node)) ++readers[node.inputs[1]];

  std::map<int, int> transposed;  // by weight, in numbers of the new graph
  Rewriter rewriter(graph);
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    if (i == graph.forward_nodes) rewriter.end_of_forward();
    const GraphNode& node = graph.nodes[i];
    if (!is_candidate(graph, node) || readers.at(node.inputs[1]) < least_readers) {
      rewriter.copy(node);
      continue;
    }
    const auto [slot, is_new] = transposed.try_emplace(node.inputs[1], -1);
    if (is_new) {
      slot->second = rewriter.insert(Transpose{}, rewriter.now(node.inputs[1]), "_transposed", node.context);
      Shape& shape = rewriter.graph().tensors[static_cast<size_t>(slot->second)].shape;
      shape = Shape{shape[1], shape[0]};
    }
    std::vector<int> inputs;
    for (const int input : node.inputs) inputs.push_back(rewriter.now(input));
    inputs[1] = slot->second;
    rewriter.replace(node, fused_node(*node.source, FullyConnectedTransposed{*params_if<FullyConnected>(node)}),
                     std::move(inputs));
  }
  if (graph.forward_nodes == graph.nodes.size()) rewriter.end_of_forward();
  graph = rewriter.finish();
}

}  // namespace symbind
