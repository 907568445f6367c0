// BatchNorm and a ReLU that is its only reader become one operator, as do BatchNorm, a sum and ReLU, the end of a
// residual unit, on devices with a kernel for them. Its gradient recomputes from the data where the result was zero; so
// backward neither reads the result nor writes the intermediate gradient. In a network that normalises before it
// convolves, the gradient of the shortcut is added to that gradient: this sum is fused too.
#include <algorithm>

#include "symbind/ops/activation.h"
#include "symbind/ops/batch_norm_recompute.h"
#include "symbind/ops/elementwise.h"
#include "symbind/passes/fuse.h"

namespace symbind {
namespace {

bool is_relu(const Activation* activation) { return activation && activation->act_type == "relu"; }

// Does a node between the two read or update a moving statistic of the norm?
bool are_states_touched_between(const Readers& readers, const GraphNode& norm, NodeId end) {
  return readers.any_between(norm.id, end, norm.inputs[3]) || readers.any_between(norm.id, end, norm.inputs[4]);
}

// The BatchNorm that computes `result`, if only `reader` reads that and it can be moved to the position of `fused`: its
// statistics and updated states must not be read before that. Otherwise null.
const GraphNode* movable_norm(const Graph& graph, const Readers& readers, TensorId result, const GraphNode& reader,
                              const GraphNode& fused) {
  if (!readers.is_only(reader.id, result)) return nullptr;
  const GraphNode& norm = graph.producer(result);
  const bool matches = params_if<BatchNorm>(norm) && result == norm.first_output && norm.context == fused.context;
  const bool in_time = matches && readers.all_after(fused.id, norm.first_output + 1) &&
                       readers.all_after(fused.id, norm.first_output + 2) &&
                       !are_states_touched_between(readers, norm, fused.id);
  return in_time ? &norm : nullptr;
}

// The BatchNorm whose only reader is this node, a ReLU; or null.
const GraphNode* norm_before(const Graph& graph, const Readers& readers, const GraphNode& node) {
  return is_relu(params_if<Activation>(node)) ? movable_norm(graph, readers, node.inputs[0], node, node) : nullptr;
}

// The same for a BatchNorm that is recomputed.
const GraphNode* recomputed_norm_before(const Graph& graph, const Readers& readers, const GraphNode& node) {
  if (!is_relu(params_if<Activation>(node)) || !readers.is_only(node.id, node.inputs[0])) return nullptr;
  const GraphNode& norm = graph.producer(node.inputs[0]);
  const auto* params = params_if<BatchNormRecompute>(norm);
  const bool matches = params && !params->relu && norm.context == node.context;
  return matches ? &norm : nullptr;
}

void fuse_forward(Graph& graph, const KernelCheck& runs_on_device) {
  const Readers readers(graph);
  Replacements replacements(graph);
  for (const GraphNode& node : graph.nodes) {
    const auto fuse = [&](const GraphNode& norm, NodePtr source, std::vector<TensorId> replaced) {
      Replacement fused{std::move(source), norm.inputs, std::move(replaced)};
      if (accepts(runs_on_device, graph, node.context, fused)) replacements.put(node.id, std::move(fused), norm.id);
    };
    if (const GraphNode* norm = recomputed_norm_before(graph, readers, node)) {
      BatchNormRecompute both = *params_if<BatchNormRecompute>(*norm);
      both.relu = true;
      fuse(*norm, fused_node(*node.source, both), {node.first_output});
    } else if ((norm = norm_before(graph, readers, node))) {
      fuse(*norm, fused_node(*node.source, BatchNormRelu{*params_if<BatchNorm>(*norm)}),
           {node.first_output, norm->first_output + 1, norm->first_output + 2});
    }
  }
  replacements.apply();
}

// ReLU of the sum of a BatchNorm and another array.
void fuse_add_forward(Graph& graph) {
  const Readers readers(graph);
  Replacements replacements(graph);
  for (const GraphNode& node : graph.forward_part()) {
    if (!is_relu(params_if<Activation>(node)) || !readers.is_only(node.id, node.inputs[0])) continue;
    const GraphNode& sum = graph.producer(node.inputs[0]);
    if (!params_if<Binary<"elemwise_add">>(sum) || sum.inputs[0] == sum.inputs[1] || sum.context != node.context)
      continue;
    for (const size_t operand : {0, 1}) {
      const GraphNode* const norm = movable_norm(graph, readers, sum.inputs[operand], sum, node);
      if (!norm) continue;
      std::vector<TensorId> inputs = norm->inputs;  // data, gamma, beta, moving_mean, moving_var
      inputs.insert(inputs.begin() + 3, sum.inputs[1 - operand]);
      Replacement fused{fused_node(*node.source, BatchNormAddRelu{*params_if<BatchNorm>(*norm)}),
                        std::move(inputs),
                        {node.first_output, norm->first_output + 1, norm->first_output + 2}};
      if (!has_fused_kernel(graph, node.context, fused)) continue;
      replacements.put(node.id, std::move(fused), sum.id);
      replacements.absorb(norm->id);
      break;
    }
  }
  replacements.apply();
}

// Its gradients, at the position of ReLU's: a sum of two arrays before it, and the gradient of BatchNorm, if its other
// inputs are there by then. ReLU's gradient, which is that of the other array too, stays a result.
void fuse_add_backward(Graph& graph) {
  const Readers readers(graph);
  Replacements replacements(graph);
  for (const GraphNode& node : graph.backward_part()) {
    const auto* params = params_if<BatchNormGrad>(node);
    if (!params) continue;
    const GraphNode& relu_grad = graph.producer(node.inputs[0]);
    if (!is_relu(params_if<ActivationGrad>(relu_grad)) || relu_grad.context != node.context ||
        replacements.is_absorbed(relu_grad.id) || replacements.has(relu_grad.id))
      continue;
    const GraphNode& forward = graph.producer(relu_grad.inputs[1]);
    if (!params_if<BatchNormAddRelu>(forward) || node.inputs[3] != forward.first_output + 1) continue;
    // A recomputed input may be available only later.
    const bool in_time =
        std::ranges::all_of(node.inputs, [&](TensorId input) { return graph.producer_id(input) <= relu_grad.id; });
    if (!in_time) continue;
    // Where nothing else reads ReLU's gradient, it need not be stored.
    if (readers.count(node.inputs[0]) < 2) continue;
    const std::vector<TensorId>& in = node.inputs;  // out_grad, data, gamma, mean, var
    BatchNormAddReluGrad fused{*params};
    std::vector<TensorId> inputs{relu_grad.inputs[0], relu_grad.inputs[1], in[1], in[2], in[3], in[4]};
    const GraphNode& total = graph.producer(relu_grad.inputs[0]);
    fused.two_grads = params_if<Binary<"elemwise_add">>(total) && readers.is_only(relu_grad.id, relu_grad.inputs[0]) &&
                      total.context == node.context && graph.is_backward(total.id);
    if (fused.two_grads) {
      inputs[0] = total.inputs[0];
      inputs.push_back(total.inputs[1]);
    }
    Replacement replacement{fused_node(*node.source, fused),
                            std::move(inputs),
                            {node.first_output, node.first_output + 1, node.first_output + 2, relu_grad.first_output}};
    if (!has_fused_kernel(graph, node.context, replacement)) continue;
    replacements.put(relu_grad.id, std::move(replacement), node.id);
    if (fused.two_grads) replacements.absorb(total.id);
  }
  replacements.apply();
}

// Is the fused node, computed or recomputed, the forward node of this gradient of BatchNorm?
bool is_forward_of(const GraphNode& forward, const GraphNode& gradient) {
  if (params_if<BatchNormRelu>(forward)) return gradient.inputs[3] == forward.first_output + 1;
  const auto* recomputed = params_if<BatchNormRecompute>(forward);
  return recomputed && recomputed->relu && gradient.inputs[1] == forward.inputs[0] &&
         gradient.inputs[3] == forward.inputs[3];
}

// Fuses the gradients of ReLU and BatchNorm, if both belong to one fused operator.
void fuse_backward(Graph& graph, const KernelCheck& runs_on_device) {
  const Readers readers(graph);
  Replacements replacements(graph);
  for (const GraphNode& node : graph.backward_part()) {
    const auto* params = params_if<BatchNormGrad>(node);
    if (!params || !readers.is_only(node.id, node.inputs[0])) continue;
    const GraphNode& relu_grad = graph.producer(node.inputs[0]);
    const auto* relu = params_if<ActivationGrad>(relu_grad);
    if (!is_relu(relu)) continue;
    const GraphNode& forward = graph.producer(relu_grad.inputs[1]);
    if (!is_forward_of(forward, node)) continue;
    const std::vector<TensorId>& in = node.inputs;  // out_grad, data, gamma, mean, var
    BatchNormReluGrad fused{*params};
    Replacement replacement{fused_node(*node.source, fused),
                            {relu_grad.inputs[0], in[1], in[2], forward.inputs[2], in[3], in[4]},
                            {node.first_output, node.first_output + 1, node.first_output + 2}};
    if (!accepts(runs_on_device, graph, node.context, replacement)) continue;
    replacements.put(node.id, std::move(replacement), relu_grad.id);
    // It may have been recomputed for the gradient alone.
    if (params_if<BatchNormRecompute>(forward) && readers.is_only(relu_grad.id, relu_grad.inputs[1]))
      replacements.absorb(forward.id);
  }
  replacements.apply();
}

void fuse_sum(Graph& graph, const KernelCheck& runs_on_device) {
  const Readers readers(graph);
  Replacements replacements(graph);
  for (const GraphNode& node : graph.backward_part()) {
    if (!params_if<Binary<"elemwise_add">>(node)) continue;
    for (const size_t operand : {0, 1}) {
      const TensorId gradient = node.inputs[operand], other = node.inputs[1 - operand];
      const GraphNode& norm_grad = graph.producer(gradient);
      const auto* params = params_if<BatchNormReluGrad>(norm_grad);
      if (!params || params->with_sum || gradient != norm_grad.first_output || !readers.is_only(node.id, gradient) ||
          norm_grad.context != node.context || replacements.is_absorbed(norm_grad.id))
        continue;
      // Fusion moves the other gradients of the operator to a later position: they must not be read before that.
      if (!readers.all_after(node.id, gradient + 1) || !readers.all_after(node.id, gradient + 2)) continue;
      BatchNormReluGrad fused = *params;
      fused.with_sum = true;
      std::vector<TensorId> inputs = norm_grad.inputs;
      inputs.push_back(other);
      Replacement replacement{
          fused_node(*norm_grad.source, fused), std::move(inputs), {node.first_output, gradient + 1, gradient + 2}};
      if (!accepts(runs_on_device, graph, node.context, replacement)) continue;
      replacements.put(node.id, std::move(replacement), norm_grad.id);
      break;
    }
  }
  replacements.apply();
}

}  // namespace

void fuse_norm_relu(Graph& graph) { fuse_norm_relu(graph, device_check()); }

void fuse_norm_relu(Graph& graph, const KernelCheck& runs_on_device) {
  fuse_add_forward(graph);
  fuse_add_backward(graph);
  fuse_forward(graph, runs_on_device);
  fuse_backward(graph, runs_on_device);
  fuse_sum(graph, runs_on_device);
}

}  // namespace symbind
