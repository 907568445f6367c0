// The gradient of max pooling needs to know which element of each window was the largest. A device may write that while
// it computes the maxima, a byte per window: the gradient then reads these bytes instead of the data, which need not be
// kept for it.
#include "symbind/ops/pool_indices.h"
#include "symbind/passes/hidden_outputs.h"

namespace symbind {

void fuse_pool_indices(Graph& graph, const KernelCheck& has_kernel) {
  HiddenOutputs found(graph, has_kernel);
  for (const GraphNode& node : graph.backward_part()) {
    const auto* params = params_if<PoolingGrad>(node);
    if (!params || params->pool_type != "max") continue;
    const TensorId out_grad = node.inputs[0], data = node.inputs[1], output = node.inputs[2];
    const GraphNode& forward = graph.producer(output);
    if (!params_if<Pooling>(forward) || forward.inputs[0] != data || forward.context != node.context) continue;
    found.put(forward, fused_node(*forward.source, PoolingIndices{*params}), {graph.tensor(output).shape, DType::uint8},
              node, fused_node(*node.source, PoolingIndicesGrad{*params}), {out_grad, TensorId::none, data});
  }
  found.apply();
}
void fuse_pool_indices(Graph& graph) { fuse_pool_indices(graph, fused_kernel_check()); }

}  // namespace symbind
