// The rules of the fuse pass: each finds one pattern and replaces it by one operator. They are in the order fuse()
// applies them.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "symbind/ops/conv_fused.h"
#include "symbind/passes/graph.h"

namespace symbind {

// A BatchNorm with given statistics goes into the convolution before or after it, where no gradient is asked for.
void fold_batch_norm(Graph& graph);
// The sum of a convolution's result and another array is made by the convolution.
void fuse_residual(Graph& graph);
// An activation goes into the matrix product or convolution before it.
void fuse_activation(Graph& graph);
// BatchNorm and ReLU become one operator, as do their gradients and a sum after these.
void fuse_norm_relu(Graph& graph);
// A weight that many products read is transposed once for all of them.
void transpose_weights(Graph& graph);
// The sum of the products that make up a shared weight's gradient becomes one product.
void fuse_products(Graph& graph);
// Chains and small trees of elementwise operators become one program each (ops/pointwise.h), where the device can run
// every one of their operators as an instruction.
void fuse_pointwise(Graph& graph);

// ---- For the rules --------------------------------------------------------------------------------------------------

// Who reads which tensor. Being an output of the graph counts as a reader.
class Readers {
 public:
  explicit Readers(const Graph& graph);
  int count(TensorId tensor) const { return counts_[tensor]; }
  // The last node that reads it; none: no node, or the graph's caller does.
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
  PerTensor<ptrdiff_t> begins_;  // where its readers begin, and after the last one where all end
};

// A node that replaces an old one, and others that go away.
struct Replacement {
  NodePtr source;
  std::vector<TensorId> inputs;    // tensors of the old graph
  std::vector<TensorId> replaced;  // by output: the tensor of the old graph that it replaces
};

// What a rule has found. The graph stays as it is until all is applied.
class Replacements {
 public:
  explicit Replacements(Graph& graph) : graph_(graph), absorbed_(graph.nodes.size(), false) {}
  // A node is replaced, and an absorbed one goes away.
  void put(NodeId node, Replacement replacement, NodeId absorbed);
  void absorb(NodeId node) { absorbed_[node] = true; }
  bool is_absorbed(NodeId node) const { return absorbed_[node]; }
  // Takes back what replaces a node; none: the node itself stays.
  std::optional<Replacement> take_back(NodeId node);
  void apply();

 private:
  Graph& graph_;
  std::map<NodeId, Replacement> found_;
  PerNode<bool> absorbed_;
};

// A convolution as the operator that can take more in, with what it has taken in so far; none: it is no convolution.
std::optional<ConvolutionFused> as_fused_convolution(const GraphNode& node);

// A node for a fused operator: named after `named`, placed as `named` is.
template <class P>
NodePtr fused_node(const Node& named, P params) {
  auto node = std::make_shared<Node>();
  node->op = &op_of<P>();
  node->name = named.name;
  node->attributes = named.attributes;
  node->params = std::make_shared<P>(std::move(params));
  return node;
}

// The parameters of a node if it is of the operator P, else null.
template <class P>
const P* params_if(const GraphNode& node) {
  return !node.is_variable() && node.source->op == &op_of<P>() ? static_cast<const P*>(node.source->params.get())
                                                               : nullptr;
}

}  // namespace symbind
