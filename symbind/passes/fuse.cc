#include "symbind/passes/fuse.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "symbind/core/error.h"
#include "symbind/passes/passes.h"
#include "symbind/passes/rewrite.h"
#include "symbind/passes/target.h"

namespace symbind {

Readers::Readers(const Graph& graph)
    : counts_(graph.tensors.size(), 0),
      first_(graph.tensors.size(), NodeId{std::numeric_limits<int32_t>::max()}),
      last_(graph.tensors.size(), NodeId::none),
      begins_(graph.tensors.size() + 1, 0) {
  for (const GraphNode& node : graph.nodes)
    for (const TensorId input : node.inputs) {
      if (counts_[input]++ == 0) first_[input] = node.id;
      last_[input] = node.id;
    }
  std::partial_sum(counts_.begin(), counts_.end(), begins_.begin() + 1);
  nodes_.resize(static_cast<size_t>(begins_.back()));
  PerTensor<ptrdiff_t> next = begins_;
  for (const GraphNode& node : graph.nodes)
    for (const TensorId input : node.inputs) nodes_[static_cast<size_t>(next[input]++)] = node.id;
  for (const TensorId output : graph.outputs) {
    ++counts_[output];
    last_[output] = NodeId::none;
  }
}

bool Readers::any_between(NodeId first, NodeId end, TensorId tensor) const {
  const auto begin = nodes_.begin() + begins_[tensor], readers_end = nodes_.begin() + begins_[tensor + 1];
  const auto next = std::upper_bound(begin, readers_end, first);
  return next != readers_end && *next < end;
}

void Replacements::put(NodeId node, Replacement replacement) { found_[node] = std::move(replacement); }

void Replacements::put(NodeId node, Replacement replacement, NodeId absorbed) {
  put(node, std::move(replacement));
  absorb(absorbed);
}

std::optional<Replacement> Replacements::take_back(NodeId node) {
  auto taken = found_.extract(node);
  if (taken.empty()) return std::nullopt;
  return std::move(taken.mapped());
}

void Replacements::apply() {
  if (found_.empty()) return;
  Rewriter rewriter(graph_);
  rewriter.for_each_node([&](const GraphNode& node) {
    if (absorbed_[node.id]) return;
    const auto found = found_.find(node.id);
    if (found == found_.end()) {
      rewriter.copy(node);
      return;
    }
    const Replacement& replacement = found->second;
    std::vector<TensorId> inputs;
    for (const TensorId input : replacement.inputs) {
      inputs.push_back(rewriter.now(input));
      require(inputs.back() != TensorId::none, "[fuse] '", replacement.source->name,
              "' would read a tensor before it is computed");
    }
    rewriter.replace(node, replacement.source, std::move(inputs), replacement.replaced);
  });
  graph_ = rewriter.finish();
}

std::optional<ConvolutionFused> as_fused_convolution(const GraphNode& node) {
  if (const auto* plain = params_if<Convolution>(node)) return ConvolutionFused{*plain};
  if (const auto* fused = params_if<ConvolutionFused>(node)) return *fused;
  return std::nullopt;
}

bool has_fused_kernel(const Graph& graph, Context context, const Replacement& replacement) {
  std::vector<Tensor> tensors;
  for (const TensorId input : replacement.inputs) tensors.push_back(graph.tensor(input));
  for (const TensorId output : replacement.replaced) tensors.push_back(graph.tensor(output));
  const std::span<const Tensor> all(tensors);
  return has_fused_kernel(graph, context, *replacement.source, all.first(replacement.inputs.size()),
                          all.subspan(replacement.inputs.size()));
}

bool has_fused_kernel(const Graph& graph, Context context, const Node& node, std::span<const Tensor> inputs,
                      std::span<const Tensor> outputs) {
  return choose({.op = *node.op,
                 .params = node.params.get(),
                 .name = node.name,
                 .inputs = inputs,
                 .outputs = outputs,
                 .is_train = graph.is_train,
                 .context = context,
                 .source = &node})
             .tier < Tier::plain;
}

void fuse(Graph& graph, bool frugal) {
  fold_batch_norm(graph);
  round_weights_once(graph);
  fuse_residual(graph);
  fuse_activation(graph);
  fuse_norm_relu(graph);
  fuse_statistics(graph);
  transpose_weights(graph);
  if (!frugal) fuse_products(graph);  // the rows of all steps stay allocated until they are concatenated
  merge_conversions(graph);
  fuse_pointwise(graph);
}

}  // namespace symbind
