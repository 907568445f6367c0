// The rules of the fuse pass: each finds one pattern and replaces it by one operator. They are in the order fuse()
// applies them.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "symbind/ops/conv_fused.h"
#include "symbind/passes/graph.h"

namespace symbind {

// Folds a BatchNorm with given statistics into the convolution before or after it, if no gradient is requested.
void fold_batch_norm(Graph& graph);
// Without gradients a convolution of 16 bits reads float32 weights itself, instead of a cast of them.
void round_weights_once(Graph& graph);
// Fuses the sum of a convolution's result and another array into the convolution.
void fuse_residual(Graph& graph);
// Fuses an activation into the matrix product or convolution before it.
void fuse_activation(Graph& graph);
// BatchNorm and ReLU become one operator, as do their gradients and a sum after these.
void fuse_norm_relu(Graph& graph);
// A convolution also computes the sums from which the BatchNorms after it, of any form, derive their statistics, if
// that is faster on the device than a separate pass.
void fuse_statistics(Graph& graph);
// Max pooling also returns the indices of its maxima, for its gradient.
void fuse_pool_indices(Graph& graph);
// The end of a residual unit also returns the signs of its result, for its gradient. They need memory from forward to
// backward, an eighth of the result in 16 bits.
void fuse_relu_signs(Graph& graph);
// The gradient of a convolution's data is that of a ReLU after a BatchNorm and a sum, and computes the sums from which
// this BatchNorm derives its gradients, if that is faster on the device than a separate pass.
void fuse_gradient_sums(Graph& graph);
// The end of a residual unit normalises the data of its shortcut, too, and one operator computes the gradients of both
// norms.
void fuse_norm_pair(Graph& graph);
// Products of independent steps with a shared weight become one product.
void merge_products(Graph& graph);
// Transposes a weight that many products read, once for all of them.
void transpose_weights(Graph& graph);
// The sum of the products that make up a shared weight's gradient becomes one product.
void fuse_products(Graph& graph);
// The elementwise operators of a recurrent cell become one program with several results (ops/pointwise.h), which reads
// and writes the gates where they are: side by side in one array.
void fuse_cells(Graph& graph);
// Chains and small trees of elementwise operators become one program each (ops/pointwise.h), where the device can run
// every one of their operators as an instruction.
void fuse_pointwise(Graph& graph);
// The conversions of all parameters in mixed precision become one operator, those of gradients one for each batch.
void merge_conversions(Graph& graph);
// After recompute: the gradient of a BatchNorm with ReLU also recomputes the norm's result. What reads this runs after
// it.
void fuse_recomputed(Graph& graph);

// ---- For the rules --------------------------------------------------------------------------------------------------

// Who reads which tensor. Being an output of the graph counts as a reader.
class Readers {
 public:
  explicit Readers(const Graph& graph);
  int count(TensorId tensor) const { return counts_[tensor]; }
  // The last node that reads it; none: no node reads it, or it is an output of the graph.
  NodeId last(TensorId tensor) const { return last_[tensor]; }
  // Do all nodes that read it come after this one?
  bool all_after(NodeId node, TensorId tensor) const { return first_[tensor] > node; }
  bool is_only(NodeId node, TensorId tensor) const { return count(tensor) == 1 && last(tensor) == node; }
  // Does a node read it that comes after `first` and before `end`?
  bool any_between(NodeId first, NodeId end, TensorId tensor) const;

 private:
  PerTensor<int> counts_;
  PerTensor<NodeId> first_, last_;
  std::vector<NodeId> nodes_;    // the readers of the first tensor in order, then those of the second, …
  PerTensor<ptrdiff_t> begins_;  // offset of its readers; one more entry at the end
};

// A node that replaces an old one, and others that are removed.
struct Replacement {
  NodePtr source;
  std::vector<TensorId> inputs;    // tensors of the old graph
  std::vector<TensorId> replaced;  // by output: the tensor of the old graph that it replaces
};

// The replacements that a rule has found. The graph does not change until all are applied.
class Replacements {
 public:
  explicit Replacements(Graph& graph) : graph_(graph), absorbed_(graph.nodes.size(), false) {}
  void put(NodeId node, Replacement replacement);
  // Replaces a node and removes an absorbed one.
  void put(NodeId node, Replacement replacement, NodeId absorbed);
  void absorb(NodeId node) { absorbed_[node] = true; }
  bool is_absorbed(NodeId node) const { return absorbed_[node]; }
  bool has(NodeId node) const { return found_.contains(node); }
  // Withdraws and returns the replacement of a node; none: the node is not replaced.
  std::optional<Replacement> take_back(NodeId node);
  void apply();

 private:
  Graph& graph_;
  std::map<NodeId, Replacement> found_;
  PerNode<bool> absorbed_;
};

// A convolution as a ConvolutionFused, with everything fused so far; none: not a convolution.
std::optional<ConvolutionFused> as_fused_convolution(const GraphNode& node);

// A node for a fused operator: with the name and placement of `named`.
template <class P>
NodePtr fused_node(const Node& named, P params) {
  auto node = std::make_shared<Node>();
  node->op = &op_of<P>();
  node->name = named.name;
  node->attributes = named.attributes;
  node->params = std::make_shared<P>(std::move(params));
  return node;
}

// For each node: can it be an instruction of a program? The device must have a function for it, and it must only read
// corresponding elements of arrays that no node updates. (Reads of an updated array must stay in order.)
PerNode<bool> fusible_nodes(const Graph& graph);
// How many instructions that takes.
size_t instructions_of(const GraphNode& node);

// Does the device have a kernel for this fused operator, rather than only the network that it replaces? The tensors are
// those of the graph before the replacement.
bool has_fused_kernel(const Graph& graph, Context context, const Replacement& replacement);
// The same for a node whose tensors are not all in the graph.
bool has_fused_kernel(const Graph& graph, Context context, const Node& node, std::span<const Tensor> inputs,
                      std::span<const Tensor> outputs);
using KernelCheck = std::function<bool(const Graph& graph, Context context, const Node& node,
                                       std::span<const Tensor> inputs, std::span<const Tensor> outputs)>;
KernelCheck fused_kernel_check();  // the function above
// Does the device run a fused operator itself, by any kernel, rather than as a step on the host? A rule that fuses for
// every device asks this, so that it does not move work to the host that the device did before.
KernelCheck device_check();
// Does a check accept the fused operator of a replacement?
bool accepts(const KernelCheck& has_kernel, const Graph& graph, Context context, const Replacement& replacement);
// Rules with another check of the device, for tests.
void fold_batch_norm(Graph& graph, const KernelCheck& runs_on_device);
void fuse_residual(Graph& graph, const KernelCheck& runs_on_device);
void fuse_activation(Graph& graph, const KernelCheck& runs_on_device);
void fuse_norm_relu(Graph& graph, const KernelCheck& runs_on_device);
void fuse_statistics(Graph& graph, const KernelCheck& has_kernel);
void fuse_pool_indices(Graph& graph, const KernelCheck& has_kernel);
void fuse_relu_signs(Graph& graph, const KernelCheck& has_kernel);
void fuse_gradient_sums(Graph& graph, const KernelCheck& has_kernel);
void fuse_norm_pair(Graph& graph, const KernelCheck& has_kernel);
void fuse_recomputed(Graph& graph, const KernelCheck& has_kernel);

// Does the device's first implementation of a program, an operator whose parameters are instructions, accept this one?
bool accepts_program(const Graph& graph, const OpDef& op, const void* params, const Node& named, Context context,
                     std::span<const Tensor> inputs, std::span<const Tensor> outputs);

// Does the device have a kernel that converts many arrays (ops/convert_arrays.h)?
bool converts_arrays(Context context);

// The same graph with all variables of the network before the first operator.
Graph variables_first(const Graph& graph);

// The parameters of a node if it is of the operator P, else null.
template <class P>
const P* params_if(const GraphNode& node) {
  return !node.is_variable() && node.source->op == &op_of<P>() ? static_cast<const P*>(node.source->params.get())
                                                               : nullptr;
}

}  // namespace symbind
