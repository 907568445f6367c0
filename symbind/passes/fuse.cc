#include "symbind/passes/fuse.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "symbind/core/error.h"
#include "symbind/ops/convert_arrays.h"
#include "symbind/ops/elementwise.h"
#include "symbind/ops/pointwise.h"
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

bool accepts(const KernelCheck& has_kernel, const Graph& graph, Context context, const Replacement& replacement) {
  std::vector<Tensor> inputs, outputs;
  for (const TensorId input : replacement.inputs) inputs.push_back(graph.tensor(input));
  for (const TensorId output : replacement.replaced) outputs.push_back(graph.tensor(output));
  return has_kernel(graph, context, *replacement.source, inputs, outputs);
}

bool has_fused_kernel(const Graph& graph, Context context, const Replacement& replacement) {
  return accepts(fused_kernel_check(), graph, context, replacement);
}

namespace {

NodeView view_of(const Graph& graph, Context context, const Node& node, std::span<const Tensor> inputs,
                 std::span<const Tensor> outputs) {
  return {.op = *node.op,
          .params = node.params.get(),
          .name = node.name,
          .inputs = inputs,
          .outputs = outputs,
          .is_train = graph.is_train,
          .context = context,
          .source = &node};
}

}  // namespace

bool has_fused_kernel(const Graph& graph, Context context, const Node& node, std::span<const Tensor> inputs,
                      std::span<const Tensor> outputs) {
  return choose(view_of(graph, context, node, inputs, outputs)).tier < Tier::plain;
}

KernelCheck fused_kernel_check() {
  return [](const Graph& graph, Context context, const Node& node, std::span<const Tensor> inputs,
            std::span<const Tensor> outputs) { return has_fused_kernel(graph, context, node, inputs, outputs); };
}

KernelCheck device_check() {
  return [](const Graph& graph, Context context, const Node& node, std::span<const Tensor> inputs,
            std::span<const Tensor> outputs) {
    const NodeView view = view_of(graph, context, node, inputs, outputs);
    const std::vector<Implementation>& all = Target::get(context).implementations(*node.op);
    // The most general ones first: the others may measure before they answer.
    return std::any_of(all.rbegin(), all.rend(), [&](const Implementation& each) {
      return each.tier != Tier::host && each.refuse(view).empty();
    });
  };
}

bool converts_arrays(Context context) {
  return Target::get(context).implementations(op_of<ConvertArrays>()).front().tier < Tier::plain;
}

Graph variables_first(const Graph& graph) {
  Rewriter rewriter(graph);
  for (const bool variables : {true, false})
    for (const GraphNode& node : graph.forward_part())
      if (node.is_variable() == variables) rewriter.copy(node);
  rewriter.end_of_forward();
  for (const GraphNode& node : graph.backward_part()) rewriter.copy(node);
  return rewriter.finish();
}

bool accepts_program(const Graph& graph, const OpDef& op, const void* params, const Node& named, Context context,
                     std::span<const Tensor> inputs, std::span<const Tensor> outputs) {
  return Target::get(context)
      .implementations(op)
      .front()
      .refuse({.op = op,
               .params = params,
               .name = named.name,
               .inputs = inputs,
               .outputs = outputs,
               .is_train = graph.is_train,
               .context = context})
      .empty();
}

namespace {

// Queries the device's first implementation of programs with a program of this node alone.
bool is_instruction(const Graph& graph, const GraphNode& node) {
  Pointwise program{.num_args = static_cast<int64_t>(node.inputs.size()), .program = ""};
  std::vector<int> operands;
  for (size_t k = 0; k < node.inputs.size(); ++k) operands.push_back(static_cast<int>(k));
  append_instructions(*node.source->op, node.source->params, operands, static_cast<int>(operands.size()),
                      program.instructions);
  const std::vector<Tensor> tensors(node.inputs.size() + 1, graph.tensor(node.first_output));
  const std::span<const Tensor> all(tensors);
  return accepts_program(graph, op_of<Pointwise>(), &program, *node.source, node.context, all.first(node.inputs.size()),
                         all.last(1));
}

bool is_fusible(const Graph& graph, const GraphNode& node, const PerTensor<bool>& updated) {
  if (node.is_variable() || node.outputs != 1 || node.inputs.empty() || instructions_of(node) == 0) return false;
  const OpDef& op = node.op();
  if (op.view || op.keeps_state || !op.shape_only.empty() || op.is_random(node.source->params.get(), graph.is_train))
    return false;
  const Tensor& output = graph.tensor(node.first_output);
  for (const TensorId input : node.inputs) {
    const Tensor& tensor = graph.tensor(input);
    if (updated[input] || !(tensor.shape == output.shape) || tensor.dtype != output.dtype) return false;
  }
  return is_instruction(graph, node);
}

}  // namespace

size_t instructions_of(const GraphNode& node) { return node.source->op == &op_of<AddN>() ? node.inputs.size() - 1 : 1; }

PerNode<bool> fusible_nodes(const Graph& graph) {
  const PerTensor<bool> updated = updated_tensors(graph);
  PerNode<bool> fusible;
  for (const GraphNode& node : graph.nodes) fusible.push_back(is_fusible(graph, node, updated));
  return fusible;
}

void fuse(Graph& graph, Frugality frugality) {
  fold_batch_norm(graph);
  round_weights_once(graph);
  fuse_residual(graph);
  fuse_activation(graph);
  fuse_norm_relu(graph);
  fuse_statistics(graph);
  fuse_pool_indices(graph);
  if (frugality < Frugality::moderate) fuse_relu_signs(graph);
  fuse_gradient_sums(graph);
  fuse_norm_pair(graph);
  if (frugality < Frugality::moderate) merge_products(graph);
  transpose_weights(graph);
  if (frugality < Frugality::full) fuse_products(graph);  // all rows stay allocated until they are concatenated
  merge_conversions(graph);
  if (frugality < Frugality::moderate) fuse_cells(graph);
  fuse_pointwise(graph);
}

}  // namespace symbind
