// The gradient of max pooling needs to know which element of each window was the largest. A device may write that while
// it computes the maxima, as a hidden output of a byte per window: the gradient then reads these bytes instead of the
// data, which need not be kept for it. Both nodes stay at their positions.
#include <map>

#include "symbind/ops/pool_indices.h"
#include "symbind/passes/fuse.h"
#include "symbind/passes/rewrite.h"

namespace symbind {
namespace {

class PoolIndicesFusion {
 public:
  PoolIndicesFusion(Graph& graph, const KernelCheck& has_kernel) : graph_(graph), has_kernel_(has_kernel) {}

  void run() {
    for (const GraphNode& node : graph_.backward_part()) find(node);
    if (gradients_.empty()) return;
    Rewriter rewriter(graph_);
    rewriter.for_each_node([&](const GraphNode& node) { rewrite(rewriter, node); });
    graph_ = rewriter.finish();
  }

 private:
  struct Pooled {
    NodePtr source;
    TensorId indices = TensorId::none;  // in the new graph
  };
  struct Gradient {
    NodePtr source;
    NodeId pooling;
  };

  Tensor indices_of(const GraphNode& pooling) const {
    return {graph_.tensor(pooling.first_output).shape, DType::uint8};
  }

  void find(const GraphNode& node) {
    const auto* params = params_if<PoolingGrad>(node);
    if (!params || params->pool_type != "max") return;
    const GraphNode& pooling = graph_.producer(node.inputs[2]);  // inputs: out_grad, data, output
    if (!params_if<Pooling>(pooling) || pooling.inputs[0] != node.inputs[1] || pooling.context != node.context) return;
    NodePtr forward = fused_node(*pooling.source, PoolingIndices{*params});
    NodePtr backward = fused_node(*node.source, PoolingIndicesGrad{*params});
    const Tensor &data = graph_.tensor(node.inputs[1]), &output = graph_.tensor(node.inputs[2]);
    const Tensor indices = indices_of(pooling);
    const std::vector<Tensor> forward_outputs{output, indices}, backward_inputs{output, indices, data};
    if (!has_kernel_(graph_, node.context, *forward, std::span(&data, 1), forward_outputs) ||
        !has_kernel_(graph_, node.context, *backward, backward_inputs, std::span(&data, 1)))
      return;
    poolings_[pooling.id].source = std::move(forward);
    gradients_[node.id] = {std::move(backward), pooling.id};
  }

  void rewrite(Rewriter& rewriter, const GraphNode& node) {
    if (const auto pooled = poolings_.find(node.id); pooled != poolings_.end()) {
      TensorId& indices = pooled->second.indices;
      indices = rewriter.replace(node, pooled->second.source, {rewriter.now(node.inputs[0])}, {node.first_output})
                    .first_output +
                1;
      rewriter.graph().tensor(indices) = indices_of(node);
    } else if (const auto gradient = gradients_.find(node.id); gradient != gradients_.end()) {
      const TensorId indices = poolings_.at(gradient->second.pooling).indices;
      rewriter.replace(node, gradient->second.source,
                       {rewriter.now(node.inputs[0]), indices, rewriter.now(node.inputs[1])});
    } else {
      rewriter.copy(node);
    }
  }

  Graph& graph_;
  const KernelCheck& has_kernel_;
  std::map<NodeId, Pooled> poolings_;
  std::map<NodeId, Gradient> gradients_;
};

}  // namespace

void fuse_pool_indices(Graph& graph, const KernelCheck& has_kernel) { PoolIndicesFusion(graph, has_kernel).run(); }
void fuse_pool_indices(Graph& graph) { fuse_pool_indices(graph, fused_kernel_check()); }

}  // namespace symbind
