#include "symbind/passes/hidden_outputs.h"

#include "symbind/passes/rewrite.h"

namespace symbind {
namespace {

std::vector<TensorId> outputs_of(const GraphNode& node) {
  std::vector<TensorId> outputs;
  for (int i = 0; i < node.outputs; ++i) outputs.push_back(node.first_output + i);
  return outputs;
}

}  // namespace

void HiddenOutputs::put(const GraphNode& node, NodePtr source, const Tensor& hidden, const GraphNode& gradient,
                        NodePtr gradient_source, std::vector<TensorId> inputs) {
  const auto tensors = [&](const std::vector<TensorId>& ids) {
    std::vector<Tensor> result;
    for (const TensorId id : ids) result.push_back(id == TensorId::none ? hidden : graph_.tensor(id));
    return result;
  };
  std::vector<TensorId> outputs = outputs_of(node);
  outputs.push_back(TensorId::none);
  if (!has_kernel_(graph_, node.context, *source, tensors(node.inputs), tensors(outputs)) ||
      !has_kernel_(graph_, gradient.context, *gradient_source, tensors(inputs), tensors(outputs_of(gradient))))
    return;
  nodes_[node.id] = {std::move(source), hidden};
  gradients_[gradient.id] = {std::move(gradient_source), std::move(inputs), node.id};
}

void HiddenOutputs::apply() {
  if (nodes_.empty()) return;
  Rewriter rewriter(graph_);
  rewriter.for_each_node([&](const GraphNode& node) {
    std::vector<TensorId> inputs;
    if (const auto found = nodes_.find(node.id); found != nodes_.end()) {
      auto& [source, hidden, made] = found->second;
      for (const TensorId input : node.inputs) inputs.push_back(rewriter.now(input));
      made = rewriter.replace(node, source, std::move(inputs), outputs_of(node)).first_output + node.outputs;
      rewriter.graph().tensor(made) = hidden;
    } else if (const auto gradient = gradients_.find(node.id); gradient != gradients_.end()) {
      for (const TensorId input : gradient->second.inputs)
        inputs.push_back(input == TensorId::none ? nodes_.at(gradient->second.node).made : rewriter.now(input));
      rewriter.replace(node, gradient->second.source, std::move(inputs));
    } else {
      rewriter.copy(node);
    }
  });
  graph_ = rewriter.finish();
}

}  // namespace symbind
