// Removes casts to the type that an array already has, which are frequent in converted networks, broadcasts and sums to
// the shape that it already has, which gradients consist of, and nodes that only affect gradients. Each would be a copy
// and would prevent fusion of the operators around it.
#include "symbind/ops/amp.h"
#include "symbind/ops/broadcast.h"
#include "symbind/ops/cast.h"
#include "symbind/passes/fuse.h"
#include "symbind/passes/passes.h"
#include "symbind/passes/rewrite.h"

namespace symbind {
namespace {

bool is_cast(const GraphNode& node) {
  return params_if<Cast>(node) || params_if<CastLike>(node) || params_if<AmpCast>(node) ||
         params_if<AmpMulticast>(node);
}

bool keeps_shape(const Graph& graph, const GraphNode& node) {
  return (params_if<SpreadLike>(node) || params_if<SumToLike>(node)) &&
         graph.tensor(node.inputs[0]).shape == graph.tensor(node.first_output).shape;
}

// Is each output equal to the input with the same index? Not if a node updates the input: a value read before the
// update must not be replaced by one read after it.
bool is_identity(const Graph& graph, const GraphNode& node, const PerTensor<bool>& updated) {
  if (!is_cast(node) && !params_if<ScaleGradient>(node) && !keeps_shape(graph, node)) return false;
  for (int i = 0; i < node.outputs; ++i) {
    const TensorId input = node.inputs[static_cast<size_t>(i)];
    const bool same_type = graph.tensor(input).dtype == graph.tensor(node.first_output + i).dtype;
    if (!same_type || updated[input] || graph.producer(input).context != node.context) return false;
  }
  return true;
}

}  // namespace

void drop_identities(Graph& graph) {
  const PerTensor<bool> updated = updated_tensors(graph);
  PerNode<bool> dropped(graph.nodes.size(), false);
  bool any = false;
  for (const GraphNode& node : graph.nodes)
    if (!node.is_variable() && is_identity(graph, node, updated)) any = dropped[node.id] = true;
  if (!any) return;

  Rewriter rewriter(graph);
  rewriter.for_each_node([&](const GraphNode& node) {
    if (!dropped[node.id]) {
      rewriter.copy(node);
      return;
    }
    for (int i = 0; i < node.outputs; ++i)
      rewriter.redirect(node.first_output + i, rewriter.now(node.inputs[static_cast<size_t>(i)]));
  });
  graph = rewriter.finish();
}

}  // namespace symbind
