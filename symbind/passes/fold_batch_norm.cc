// BatchNorm with given statistics is a scale and a shift per channel, which a convolution can do with other weights and
// another bias. Behind a convolution this is always so; before it only without padding, since the zeros around the data
// are not shifted. The folded weights are derived from parameters: a plan for inference makes them once.
#include <algorithm>
#include <optional>

#include "symbind/ops/batch_norm.h"
#include "symbind/ops/conv_fused.h"
#include "symbind/passes/fuse.h"

namespace symbind {
namespace {

bool is_channel_axis(const BatchNorm& norm, const Convolution& convolution, const Shape& shape, const Node& node) {
  return shape.axis(norm.axis, node.name) == (channels_behind(convolution.layout) ? shape.rank() - 1 : 1);
}

class Folding {
 public:
  explicit Folding(Graph& graph) : graph_(graph), readers_(graph), replacements_(graph) {}

  void run() {
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      const auto number = static_cast<int>(i);
      if (!is_foldable(graph_.nodes[i])) continue;
      if (!fold_into_before(number)) fold_into_behind(number);
    }
    replacements_.apply();
  }

 private:
  bool is_foldable(const GraphNode& node) const {
    const auto* norm = params_if<BatchNorm>(node);
    if (!norm || uses_batch_statistics(*norm, graph_.is_train)) return false;
    for (const int output : {1, 2})
      if (readers_.count(node.first_output + output) > 0) return false;
    return graph_.tensors[static_cast<size_t>(node.first_output)].dtype == DType::float32;
  }

  // The norm stands behind a convolution whose result only it reads.
  bool fold_into_before(int number) {
    const GraphNode& node = graph_.nodes[static_cast<size_t>(number)];
    const auto& norm = *params_if<BatchNorm>(node);
    const int data = node.inputs[0], before = graph_.producer[static_cast<size_t>(data)];
    const GraphNode& convolution = graph_.nodes[static_cast<size_t>(before)];
    std::optional<ConvolutionFused> fused = as_fused_convolution(convolution);
    if (!fused || fused->norm || !readers_.is_only(number, data) || convolution.context != node.context ||
        replacements_.is_absorbed(before) || !is_channel_axis(norm, *fused, shape_of(data), *node.source))
      return false;
    fused->norm = true;
    fused->norm_eps = norm.eps;
    fused->norm_fix_gamma = norm.fix_gamma;
    std::vector<int> inputs = convolution.inputs;
    // A norm before it may have gone into it already.
    if (std::optional<Replacement> pending = replacements_.take_back(before)) {
      const auto& taken = *static_cast<const ConvolutionFused*>(pending->source->params.get());
      fused->norm_before = taken.norm_before;
      fused->norm_before_eps = taken.norm_before_eps;
      fused->norm_before_fix_gamma = taken.norm_before_fix_gamma;
      inputs = std::move(pending->inputs);
    }
    inputs.insert(inputs.end(), node.inputs.begin() + 1, node.inputs.end());
    replacements_.put(number, {fused_node(*node.source, *fused), std::move(inputs), {node.first_output}}, before);
    return true;
  }

  // The norm stands before a convolution without padding that alone reads it.
  void fold_into_behind(int number) {
    const GraphNode& node = graph_.nodes[static_cast<size_t>(number)];
    const auto& norm = *params_if<BatchNorm>(node);
    const int behind = readers_.last(node.first_output);
    if (behind < 0 || readers_.count(node.first_output) != 1) return;
    const GraphNode& convolution = graph_.nodes[static_cast<size_t>(behind)];
    const auto* plain = params_if<Convolution>(convolution);
    if (!plain || convolution.inputs[0] != node.first_output || convolution.context != node.context ||
        !is_channel_axis(norm, *plain, shape_of(node.first_output), *node.source) ||
        std::any_of(plain->pad.begin(), plain->pad.end(), [](int64_t pad) { return pad != 0; }))
      return;
    ConvolutionFused fused{*plain};
    fused.norm_before = true;
    fused.norm_before_eps = norm.eps;
    fused.norm_before_fix_gamma = norm.fix_gamma;
    std::vector<int> inputs = convolution.inputs;
    inputs[0] = node.inputs[0];
    inputs.insert(inputs.end(), node.inputs.begin() + 1, node.inputs.end());
    replacements_.put(behind, {fused_node(*convolution.source, fused), std::move(inputs), {convolution.first_output}},
                      number);
  }

  const Shape& shape_of(int tensor) const { return graph_.tensors[static_cast<size_t>(tensor)].shape; }

  Graph& graph_;
  const Readers readers_;
  Replacements replacements_;
};

}  // namespace

void fold_batch_norm(Graph& graph) {
  const bool has_backward = graph.forward_nodes != graph.nodes.size();
  if (!has_backward) Folding(graph).run();
}

}  // namespace symbind
