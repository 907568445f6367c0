#include "symbind/passes/fuse.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "symbind/passes/passes.h"
#include "symbind/passes/rewrite.h"
#include "symbind/passes/target.h"

namespace symbind {

Readers::Readers(const Graph& graph)
    : counts_(graph.tensors.size(), 0),
      first_(graph.tensors.size(), std::numeric_limits<int>::max()),
      last_(graph.tensors.size(), -1),
      begins_(graph.tensors.size() + 1, 0) {
  for (size_t i = 0; i < graph.nodes.size(); ++i)
    for (const int input : graph.nodes[i].inputs) {
      if (counts_[static_cast<size_t>(input)]++ == 0) first_[static_cast<size_t>(input)] = static_cast<int>(i);
      last_[static_cast<size_t>(input)] = static_cast<int>(i);
    }
  for (size_t t = 0; t < counts_.size(); ++t) begins_[t + 1] = begins_[t] + static_cast<size_t>(counts_[t]);
  nodes_.resize(begins_.back());
  std::vector<size_t> next = begins_;
  for (size_t i = 0; i < graph.nodes.size(); ++i)
    for (const int input : graph.nodes[i].inputs) nodes_[next[static_cast<size_t>(input)]++] = static_cast<int>(i);
  for (const int output : graph.outputs) {
    ++counts_[static_cast<size_t>(output)];
    last_[static_cast<size_t>(output)] = -1;
  }
}

bool Readers::any_between(int first, int end, int tensor) const {
  const auto begin = nodes_.begin() + static_cast<ptrdiff_t>(begins_[static_cast<size_t>(tensor)]);
  const auto behind = nodes_.begin() + static_cast<ptrdiff_t>(begins_[static_cast<size_t>(tensor) + 1]);
  const auto next = std::upper_bound(begin, behind, first);
  return next != behind && *next < end;
}

void Replacements::put(int node, Replacement replacement, int absorbed) {
  found_[node] = std::move(replacement);
  absorb(absorbed);
}

std::optional<Replacement> Replacements::take_back(int node) {
  auto taken = found_.extract(node);
  if (taken.empty()) return std::nullopt;
  return std::move(taken.mapped());
}

void Replacements::apply() {
  if (found_.empty()) return;
  Rewriter rewriter(graph_);
  for (size_t i = 0; i < graph_.nodes.size(); ++i) {
    if (i == graph_.forward_nodes) rewriter.end_of_forward();
    if (absorbed_[i]) continue;
    const auto found = found_.find(static_cast<int>(i));
    if (found == found_.end()) {
      rewriter.copy(graph_.nodes[i]);
      continue;
    }
    const Replacement& replacement = found->second;
    std::vector<int> inputs;
    for (const int input : replacement.inputs) inputs.push_back(rewriter.now(input));
    rewriter.replace(graph_.nodes[i], replacement.source, std::move(inputs), replacement.stands_for);
  }
  if (graph_.forward_nodes == graph_.nodes.size()) rewriter.end_of_forward();
  graph_ = rewriter.finish();
}

std::optional<ConvolutionFused> as_fused_convolution(const GraphNode& node) {
  if (const auto* plain = params_if<Convolution>(node)) return ConvolutionFused{*plain};
  if (const auto* fused = params_if<ConvolutionFused>(node)) return *fused;
  return std::nullopt;
}

void fuse(Graph& graph, bool frugal) {
  fold_batch_norm(graph);
  fuse_residual(graph);
  fuse_activation(graph);
  fuse_norm_relu(graph);
  transpose_weights(graph);
  if (!frugal) fuse_products(graph);  // the rows of all steps are held until they are joined
  fuse_pointwise(graph);
}

}  // namespace symbind
