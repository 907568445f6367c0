// An activation that is the only reader of a matrix product or a convolution is fused into it. In training this is
// possible if the activation's gradient is a function of its output, since then the intermediate value is not read.
#include "symbind/ops/activation.h"
#include "symbind/ops/conv_fused.h"
#include "symbind/ops/fully_connected.h"
#include "symbind/passes/fuse.h"

namespace symbind {
namespace {

// The operator that computes both, or none.
NodePtr with_activation(const GraphNode& before, const Node& activation_node) {
  const std::string& act_type = static_cast<const Activation*>(activation_node.params.get())->act_type;
  if (const auto* product = params_if<FullyConnected>(before))
    return fused_node(activation_node, FullyConnectedActivation{*product, act_type});
  if (std::optional<ConvolutionFused> fused = as_fused_convolution(before); fused && fused->act_type.empty()) {
    fused->act_type = act_type;
    return fused_node(activation_node, *fused);
  }
  return nullptr;
}

}  // namespace

void fuse_activation(Graph& graph) { fuse_activation(graph, device_check()); }

void fuse_activation(Graph& graph, const KernelCheck& runs_on_device) {
  const Readers readers(graph);
  Replacements replacements(graph);
  for (const GraphNode& node : graph.nodes) {
    if (!params_if<Activation>(node)) continue;
    const GraphNode& before = graph.producer(node.inputs[0]);
    if (readers.count(node.inputs[0]) != 1 || before.context != node.context) continue;
    NodePtr source = with_activation(before, *node.source);
    if (!source) continue;
    Replacement fused{std::move(source), before.inputs, {node.first_output}};
    if (accepts(runs_on_device, graph, node.context, fused)) replacements.put(node.id, std::move(fused), before.id);
  }
  replacements.apply();
}

}  // namespace symbind
