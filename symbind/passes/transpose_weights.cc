// FullyConnected reads its weight transposed; with few rows this costs as much as the multiplication. A weight shared
// by the steps of a recurrent network is therefore transposed once, and the steps read the transposed copy.
#include <map>

#include "symbind/ops/fully_connected.h"
#include "symbind/ops/transpose.h"
#include "symbind/passes/fuse.h"
#include "symbind/passes/rewrite.h"
#include "symbind/passes/target.h"

namespace symbind {
namespace {

constexpr int least_readers = 4;
constexpr int64_t most_rows = 256;  // with more rows, transposing is negligible

bool is_candidate(const Graph& graph, const GraphNode& node) {
  const auto* params = params_if<FullyConnected>(node);
  if (!params || !runs_on_device(op_of<FullyConnectedTransposed>(), node.context)) return false;
  return graph.producer(node.inputs[1]).context == node.context &&
         size_of(*params, graph.tensor(node.inputs[0]).shape).rows <= most_rows;
}

}  // namespace

void transpose_weights(Graph& graph) {
  std::map<TensorId, int> readers;  // by weight
  for (const GraphNode& node : graph.nodes)
    if (is_candidate(graph, node)) ++readers[node.inputs[1]];

  std::map<TensorId, TensorId> transposed;  // by weight, in the new graph
  Rewriter rewriter(graph);
  rewriter.for_each_node([&](const GraphNode& node) {
    if (!is_candidate(graph, node) || readers.at(node.inputs[1]) < least_readers) {
      rewriter.copy(node);
      return;
    }
    const auto [slot, is_new] = transposed.try_emplace(node.inputs[1], TensorId::none);
    if (is_new) {
      slot->second = rewriter.insert(Transpose{}, rewriter.now(node.inputs[1]), "_transposed", node.context);
      Shape& shape = rewriter.graph().tensor(slot->second).shape;
      shape = Shape{shape[1], shape[0]};
    }
    std::vector<TensorId> inputs;
    for (const TensorId input : node.inputs) inputs.push_back(rewriter.now(input));
    inputs[1] = slot->second;
    rewriter.replace(node, fused_node(*node.source, FullyConnectedTransposed{*params_if<FullyConnected>(node)}),
                     std::move(inputs));
  });
  graph = rewriter.finish();
}

}  // namespace symbind
