// The form the passes work on: a network, and for training its backward part, as one flat list of nodes in the order
// they run. Every output of every node is a tensor. Nodes and tensors are named by their ids.
#pragma once

#include <concepts>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "symbind/core/context.h"
#include "symbind/graph/op.h"
#include "symbind/graph/symbol.h"
#include "symbind/passes/tensor.h"

namespace symbind {

struct Implementation;
class Kernel;

// The positions of a node and of a tensor in the lists of their graph; distinct types, so that they cannot be confused.
// Nodes run in the order of their ids.
enum class NodeId : int32_t { none = -1 };
enum class TensorId : int32_t { none = -1 };

template <class T>
concept GraphId = std::same_as<T, NodeId> || std::same_as<T, TensorId>;

template <GraphId Id>
constexpr size_t index_of(Id id) {
  return static_cast<size_t>(id);
}
template <GraphId Id>
constexpr Id operator+(Id id, int distance) {
  return Id{static_cast<int32_t>(id) + distance};
}
template <GraphId Id>
constexpr int operator-(Id id, Id from) {
  return static_cast<int32_t>(id) - static_cast<int32_t>(from);
}

// A list with an entry per node or per tensor.
template <GraphId Id, class T>
class ListById : public std::vector<T> {
 public:
  using std::vector<T>::vector;
  decltype(auto) operator[](Id id) { return std::vector<T>::operator[](index_of(id)); }
  decltype(auto) operator[](Id id) const { return std::vector<T>::operator[](index_of(id)); }
};
template <class T>
using PerNode = ListById<NodeId, T>;
template <class T>
using PerTensor = ListById<TensorId, T>;

struct GraphNode {
  NodeId id = NodeId::none;
  NodePtr source;                // operator, parameters, name; shared with the symbol, never changed
  std::vector<TensorId> inputs;  // auxiliary states come last
  TensorId first_output = TensorId::none;
  int outputs = 0;  // how many: their ids follow each other
  Context context;
  int random_slot = -1;         // index of a random operator's draw in the run
  bool caches_derived = false;  // may its kernel cache data between runs? Set by build_kernels()
  const Implementation* implementation = nullptr;
  std::shared_ptr<Kernel> kernel;

  bool is_variable() const { return source->is_variable(); }
  const OpDef& op() const { return *source->op; }
};

struct Graph {
  std::vector<GraphNode> nodes;
  std::vector<Tensor> tensors;
  PerTensor<NodeId> producers;
  std::vector<TensorId> outputs;         // of the network, then the requested gradients
  size_t net_outputs = 0;                // how many of `outputs` are the network's
  std::vector<Context> output_contexts;  // the context required for each of `outputs`; empty: any
  size_t forward_nodes = 0;              // nodes from here on belong to the backward part
  bool is_train = false;
  int random_slots = 0;
  std::shared_ptr<NodeObjects> objects;  // none: kernels share nothing

  // The nodes of a symbol in topological order.
  static Graph from(const Symbol& symbol);

  GraphNode& node(NodeId id) { return nodes[index_of(id)]; }
  const GraphNode& node(NodeId id) const { return nodes[index_of(id)]; }
  Tensor& tensor(TensorId id) { return tensors[index_of(id)]; }
  const Tensor& tensor(TensorId id) const { return tensors[index_of(id)]; }
  // The node whose output the tensor is.
  NodeId producer_id(TensorId id) const { return producers[id]; }
  const GraphNode& producer(TensorId id) const { return node(producer_id(id)); }

  // Adds a node and its tensors at the end. The reference is valid until the next append.
  GraphNode& append(NodePtr source, std::vector<TensorId> inputs);
  std::span<const GraphNode> forward_part() const { return std::span(nodes).first(forward_nodes); }
  std::span<const GraphNode> backward_part() const { return std::span(nodes).subspan(forward_nodes); }
  bool has_backward() const { return forward_nodes != nodes.size(); }
  bool is_backward(NodeId id) const { return index_of(id) >= forward_nodes; }
};

// For each tensor: does a node update it?
PerTensor<bool> updated_tensors(const Graph& graph);

// For each input of a node: is it read for its shape and type alone?
std::vector<bool> shape_only_inputs(const GraphNode& node);

struct NodeShapes {
  std::vector<Shape> inputs, outputs;
};
NodeShapes shapes_of(const Graph& graph, const GraphNode& node);

// How many products the node adds up, if its operator says so, else 0.
double multiply_adds(const Graph& graph, const GraphNode& node);

}  // namespace symbind
