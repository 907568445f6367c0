// The result of a BatchNorm with ReLU that is recomputed for backward is usually read by the gradient of the next
// operator's weight, right before the norm's own gradient is computed. That gradient reads the same data and
// statistics: it can write the result too, if the gradient of the weight, which nothing waits for, is computed after
// it.
#include <algorithm>
#include <map>
#include <utility>

#include "symbind/ops/batch_norm_recompute.h"
#include "symbind/passes/fuse.h"
#include "symbind/passes/rewrite.h"

namespace symbind {
namespace {

class RecomputedFusion {
 public:
  RecomputedFusion(Graph& graph, const KernelCheck& has_kernel)
      : graph_(graph), readers_(graph), has_kernel_(has_kernel), removed_(graph.nodes.size(), false) {}

  void run() {
    for (const GraphNode& node : graph_.backward_part())
      if (params_if<BatchNormReluGrad>(node)) gradients_.emplace(Norm{node.inputs[1], node.inputs[4]}, node.id);
    for (const GraphNode& node : graph_.backward_part()) find(node);
    if (fused_.empty()) return;
    Rewriter rewriter(graph_);
    rewriter.for_each_node([&](const GraphNode& node) { rewrite(rewriter, node); });
    graph_ = rewriter.finish();
  }

 private:
  using Norm = std::pair<TensorId, TensorId>;  // its data and its mean, which identify it
  struct Fused {
    Replacement gradient;
    std::vector<NodeId> readers;  // of the recomputed result, in order
  };

  void find(const GraphNode& recomputed) {
    const auto* const params = params_if<BatchNormRecompute>(recomputed);
    if (!params || !params->relu) return;
    const auto found = gradients_.find({recomputed.inputs[0], recomputed.inputs[3]});
    if (found == gradients_.end()) return;
    const GraphNode& gradient = graph_.node(found->second);
    const TensorId first = gradient.first_output;
    Fused fused{{fused_node(*gradient.source, BatchNormReluGradOutput{*params_if<BatchNormReluGrad>(gradient)}),
                 gradient.inputs,
                 {first, first + 1, first + 2, recomputed.first_output}},
                {}};
    if (recomputed.id > gradient.id || recomputed.context != gradient.context || fused_.contains(gradient.id) ||
        !find_readers(recomputed, gradient, fused.readers) ||
        !accepts(has_kernel_, graph_, gradient.context, fused.gradient))
      return;
    removed_[recomputed.id] = true;
    for (const NodeId reader : fused.readers) removed_[reader] = true;
    fused_.emplace(gradient.id, std::move(fused));
  }

  // The nodes that read the result before the gradient is computed; false: one of them cannot run after it.
  bool find_readers(const GraphNode& recomputed, const GraphNode& gradient, std::vector<NodeId>& readers) const {
    for (size_t i = index_of(recomputed.id) + 1; i <= index_of(gradient.id); ++i) {
      const GraphNode& node = graph_.nodes[i];
      if (std::ranges::find(node.inputs, recomputed.first_output) == node.inputs.end()) continue;
      if (!can_run_after(gradient, node)) return false;
      readers.push_back(node.id);
    }
    return true;
  }

  bool can_run_after(const GraphNode& gradient, const GraphNode& node) const {
    if (params_if<BatchNormReluGrad>(node) || removed_[node.id] || node.op().keeps_state) return false;
    const std::vector<bool> updated = node.op().updated_inputs(node.source->params.get(), node.inputs.size());
    if (std::ranges::find(updated, true) != updated.end()) return false;
    for (int i = 0; i < node.outputs; ++i)
      if (!readers_.all_after(gradient.id, node.first_output + i)) return false;
    return true;
  }

  void rewrite(Rewriter& rewriter, const GraphNode& node) {
    const auto found = fused_.find(node.id);
    if (found == fused_.end()) {
      if (!removed_[node.id]) rewriter.copy(node);
      return;
    }
    const auto& [gradient, readers] = found->second;
    std::vector<TensorId> inputs;
    for (const TensorId input : gradient.inputs) inputs.push_back(rewriter.now(input));
    rewriter.replace(node, gradient.source, std::move(inputs), gradient.replaced);
    for (const NodeId reader : readers) rewriter.copy(graph_.node(reader));
  }

  Graph& graph_;
  const Readers readers_;
  const KernelCheck& has_kernel_;
  std::map<Norm, NodeId> gradients_;  // the gradient of each norm
  std::map<NodeId, Fused> fused_;     // by gradient
  PerNode<bool> removed_;             // from its position
};

}  // namespace

void fuse_recomputed(Graph& graph, const KernelCheck& has_kernel) { RecomputedFusion(graph, has_kernel).run(); }
void fuse_recomputed(Graph& graph) { fuse_recomputed(graph, fused_kernel_check()); }

}  // namespace symbind
