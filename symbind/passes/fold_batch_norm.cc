// BatchNorm with given statistics is a scale and a shift per channel, which can be folded into the weights and bias of
// a convolution: always of the one before it, and of the one after it only without padding, since padding zeros are not
// shifted. The folded weights are derived from parameters: a plan for inference computes them once.
#include <algorithm>
#include <optional>

#include "symbind/ops/batch_norm.h"
#include "symbind/ops/conv_fused.h"
#include "symbind/passes/fuse.h"

namespace symbind {
namespace {

bool is_channel_axis(const BatchNorm& norm, const Convolution& convolution, const Shape& shape, const Node& node) {
  return shape.axis(norm.axis, node.name) == (is_channels_last(convolution.layout) ? shape.rank() - 1 : 1);
}

class Folding {
 public:
  Folding(Graph& graph, const KernelCheck& runs_on_device)
      : graph_(graph), runs_on_device_(runs_on_device), readers_(graph), replacements_(graph) {}

  void run() {
    for (const GraphNode& node : graph_.nodes)
      if (is_foldable(node) && !fold_into_previous(node)) fold_into_next(node);
    replacements_.apply();
  }

 private:
  bool is_foldable(const GraphNode& node) const {
    const auto* norm = params_if<BatchNorm>(node);
    if (!norm || uses_batch_statistics(*norm, graph_.is_train)) return false;
    for (const int output : {1, 2})
      if (readers_.count(node.first_output + output) > 0) return false;
    return graph_.tensor(node.first_output).dtype != DType::float64;
  }

  // The norm follows a convolution whose only reader it is.
  bool fold_into_previous(const GraphNode& node) {
    const auto& norm = *params_if<BatchNorm>(node);
    const TensorId data = node.inputs[0];
    const GraphNode& convolution = graph_.producer(data);
    std::optional<ConvolutionFused> fused = as_fused_convolution(convolution);
    if (!fused || fused->norm || !readers_.is_only(node.id, data) || convolution.context != node.context ||
        replacements_.is_absorbed(convolution.id) || !is_channel_axis(norm, *fused, shape_of(data), *node.source))
      return false;
    fused->norm = true;
    fused->norm_eps = norm.eps;
    fused->norm_fix_gamma = norm.fix_gamma;
    std::vector<TensorId> inputs = convolution.inputs;
    // A norm before the convolution may already be folded into it.
    std::optional<Replacement> pending = replacements_.take_back(convolution.id);
    if (pending) {
      const auto& taken = *static_cast<const ConvolutionFused*>(pending->source->params.get());
      fused->norm_before = taken.norm_before;
      fused->norm_before_eps = taken.norm_before_eps;
      fused->norm_before_fix_gamma = taken.norm_before_fix_gamma;
      inputs = pending->inputs;
    }
    inputs.insert(inputs.end(), node.inputs.begin() + 1, node.inputs.end());
    Replacement replacement{fused_node(*node.source, *fused), std::move(inputs), {node.first_output}};
    if (!accepts(runs_on_device_, graph_, node.context, replacement)) {
      if (pending) replacements_.put(convolution.id, std::move(*pending));
      return false;
    }
    replacements_.put(node.id, std::move(replacement), convolution.id);
    return true;
  }

  // The norm precedes a convolution without padding, which is its only reader.
  void fold_into_next(const GraphNode& node) {
    const auto& norm = *params_if<BatchNorm>(node);
    const NodeId reader = readers_.last(node.first_output);
    if (reader == NodeId::none || readers_.count(node.first_output) != 1) return;
    const GraphNode& convolution = graph_.node(reader);
    const auto* plain = params_if<Convolution>(convolution);
    if (!plain || convolution.inputs[0] != node.first_output || convolution.context != node.context ||
        !is_channel_axis(norm, *plain, shape_of(node.first_output), *node.source) ||
        std::any_of(plain->pad.begin(), plain->pad.end(), [](int64_t pad) { return pad != 0; }))
      return;
    ConvolutionFused fused{*plain};
    fused.norm_before = true;
    fused.norm_before_eps = norm.eps;
    fused.norm_before_fix_gamma = norm.fix_gamma;
    std::vector<TensorId> inputs = convolution.inputs;
    inputs[0] = node.inputs[0];
    inputs.insert(inputs.end(), node.inputs.begin() + 1, node.inputs.end());
    Replacement replacement{fused_node(*convolution.source, fused), std::move(inputs), {convolution.first_output}};
    if (accepts(runs_on_device_, graph_, node.context, replacement))
      replacements_.put(reader, std::move(replacement), node.id);
  }

  const Shape& shape_of(TensorId tensor) const { return graph_.tensor(tensor).shape; }

  Graph& graph_;
  const KernelCheck& runs_on_device_;
  const Readers readers_;
  Replacements replacements_;
};

}  // namespace

void fold_batch_norm(Graph& graph) { fold_batch_norm(graph, device_check()); }

void fold_batch_norm(Graph& graph, const KernelCheck& runs_on_device) {
  if (!graph.has_backward()) Folding(graph, runs_on_device).run();
}

}  // namespace symbind
