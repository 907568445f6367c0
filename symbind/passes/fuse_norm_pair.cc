// A residual unit whose shortcut is a convolution ends in ReLU of the sum of two BatchNorms. Where the device has a
// kernel for both, the norm of the shortcut is not stored, and the gradient of the sum is read once for the gradients
// of both. Forward and backward are independent of each other. Runs after the unit's own norm has been fused with the
// sum and with ReLU, is given its sums and stores signs, and after its gradient has been fused likewise.
#include <algorithm>
#include <map>

#include "symbind/ops/batch_norm_pair.h"
#include "symbind/ops/conv_statistics.h"
#include "symbind/ops/relu_signs.h"
#include "symbind/passes/fuse.h"

namespace symbind {
namespace {

// ---- Forward --------------------------------------------------------------------------------------------------------

// A BatchNorm of some form: its inputs are data, gamma, beta, [two sums], [another array], moving_mean, moving_var.
struct Norm {
  const GraphNode& node;
  const BatchNorm& params;
  bool given_sums = false, signs = false;

  size_t arrays() const { return given_sums ? 5 : 3; }
  TensorId state(size_t index) const { return node.inputs[node.inputs.size() - 2 + index]; }
};

// A norm alone; none: the node is another one.
std::optional<Norm> norm_alone(const GraphNode& node) {
  if (const auto* norm = params_if<BatchNorm>(node)) return Norm{node, *norm};
  const auto* given = params_if<BatchNormGivenSums>(node);
  return given && !given->add && !given->relu ? std::optional(Norm{node, *given, true}) : std::nullopt;
}

// A norm with a sum and ReLU.
std::optional<Norm> end_of_unit(const GraphNode& node) {
  if (const auto* norm = params_if<BatchNormAddRelu>(node)) return Norm{node, *norm};
  if (const auto* with_signs = params_if<BatchNormSigns>(node))
    return Norm{node, *with_signs, with_signs->given_sums, true};
  const auto* given = params_if<BatchNormGivenSums>(node);
  return given && given->add && given->relu ? std::optional(Norm{node, *given, true}) : std::nullopt;
}

// Can the norm be computed at the position of the other one? Its statistics and updated states must not be read before.
bool can_move_to(const Readers& readers, const Norm& norm, const Norm& end) {
  const TensorId mean = norm.node.first_output + 1, var = norm.node.first_output + 2;
  for (const size_t state : {0, 1})
    if (readers.any_between(norm.node.id, end.node.id, norm.state(state)) || norm.state(state) == end.state(state))
      return false;
  return readers.all_after(end.node.id, mean) && readers.all_after(end.node.id, var);
}

// The norm whose result, which nothing else reads, is added at the end of the unit; or none.
std::optional<Norm> norm_of_shortcut(const Graph& graph, const Readers& readers, const Norm& end) {
  const TensorId added = end.node.inputs[end.arrays()];
  const std::optional<Norm> norm = norm_alone(graph.producer(added));
  const bool fits = norm && added == norm->node.first_output && readers.is_only(end.node.id, added) &&
                    norm->node.context == end.node.context && is_pair(end.params, norm->params) &&
                    can_move_to(readers, *norm, end);
  return fits ? norm : std::nullopt;
}

Replacement pair_of(const Norm& end, const Norm& other) {
  Replacement pair{fused_node(*end.node.source, BatchNormPair{end.params, end.given_sums, other.given_sums, end.signs}),
                   {},
                   {end.node.first_output, end.node.first_output + 1, end.node.first_output + 2,
                    other.node.first_output + 1, other.node.first_output + 2}};
  for (const Norm* norm : {&end, &other})
    for (size_t i = 0; i < norm->arrays(); ++i) pair.inputs.push_back(norm->node.inputs[i]);
  for (const Norm* norm : {&end, &other})
    for (const size_t state : {0, 1}) pair.inputs.push_back(norm->state(state));
  if (end.signs) pair.replaced.push_back(end.node.first_output + 3);
  return pair;
}

void fuse_forward(Graph& graph, const KernelCheck& has_kernel) {
  const Readers readers(graph);
  Replacements replacements(graph);
  for (const GraphNode& node : graph.forward_part()) {
    const std::optional<Norm> end = end_of_unit(node);
    const std::optional<Norm> other = end ? norm_of_shortcut(graph, readers, *end) : std::nullopt;
    if (!other) continue;
    Replacement pair = pair_of(*end, *other);
    if (accepts(has_kernel, graph, node.context, pair)) replacements.put(node.id, std::move(pair), other->node.id);
  }
  replacements.apply();
}

// ---- Backward -------------------------------------------------------------------------------------------------------

// The gradient of a norm at the end of a unit, with that of ReLU or from sums.
struct EndGradient {
  const BatchNorm& params;
  bool from_sums = false, signs = false, two_grads = false;
};

std::optional<EndGradient> gradient_of_end(const GraphNode& node) {
  if (const auto* from_sums = params_if<BatchNormGradFromSums>(node)) return EndGradient{*from_sums, true};
  if (const auto* with_signs = params_if<BatchNormSignsGrad>(node))
    return EndGradient{*with_signs, false, true, with_signs->two_grads};
  if (const auto* with_relu = params_if<BatchNormAddReluGrad>(node))
    return EndGradient{*with_relu, false, false, with_relu->two_grads};
  return std::nullopt;
}

// These gradients, by the gradient of the sum, which they read or compute.
std::map<TensorId, NodeId> gradients_of_ends(const Graph& graph) {
  constexpr int sum_grad = 3;  // among the outputs of those with ReLU
  std::map<TensorId, NodeId> found;
  for (const GraphNode& node : graph.backward_part())
    if (const std::optional<EndGradient> end = gradient_of_end(node))
      found.emplace(end->from_sums ? node.inputs[0] : node.first_output + sum_grad, node.id);
  return found;
}

// The gradients of both norms, at the position of that of the end.
Replacement pair_gradient(const GraphNode& node, const EndGradient& end, const GraphNode& other) {
  Replacement pair;
  pair.inputs = node.inputs;
  const auto more_grad = pair.inputs.end() - (end.two_grads ? 1 : 0);
  pair.inputs.insert(more_grad, other.inputs.begin() + 1, other.inputs.end());  // data, gamma, mean, var
  for (const GraphNode* norm : {&node, &other})
    for (const int i : {0, 1, 2}) pair.replaced.push_back(norm->first_output + i);
  if (end.from_sums) {
    pair.source = fused_node(*node.source, BatchNormPairGradFromSums{end.params});
  } else {
    pair.source = fused_node(*node.source, BatchNormPairGrad{end.params, end.signs, end.two_grads});
    pair.replaced.push_back(other.inputs[0]);
  }
  return pair;
}

void fuse_backward(Graph& graph, const KernelCheck& has_kernel) {
  const std::map<TensorId, NodeId> ends = gradients_of_ends(graph);
  Replacements replacements(graph);
  for (const GraphNode& other : graph.backward_part()) {
    const auto* const params = params_if<BatchNormGrad>(other);
    const auto found = params ? ends.find(other.inputs[0]) : ends.end();
    if (found == ends.end() || replacements.has(found->second)) continue;
    const GraphNode& node = graph.node(found->second);
    const std::optional<EndGradient> end = gradient_of_end(node);
    if (!end || !is_pair(end->params, *params) || node.context != other.context || node.id > other.id) continue;
    // A recomputed input may be available only later.
    const auto is_there = [&](TensorId input) { return graph.producer_id(input) < node.id; };
    if (!std::all_of(other.inputs.begin() + 1, other.inputs.end(), is_there)) continue;
    Replacement pair = pair_gradient(node, *end, other);
    if (accepts(has_kernel, graph, node.context, pair)) replacements.put(node.id, std::move(pair), other.id);
  }
  replacements.apply();
}

}  // namespace

void fuse_norm_pair(Graph& graph, const KernelCheck& has_kernel) {
  fuse_forward(graph, has_kernel);
  fuse_backward(graph, has_kernel);
}
void fuse_norm_pair(Graph& graph) { fuse_norm_pair(graph, fused_kernel_check()); }

}  // namespace symbind
