// The form the passes work on: a network, and for training its backward part, as one flat list of nodes in the order
// they run. Every output of every node is a tensor with a number; nodes name their inputs by those numbers.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "symbind/core/context.h"
#include "symbind/core/dtype.h"
#include "symbind/core/shape.h"
#include "symbind/graph/op.h"
#include "symbind/graph/symbol.h"

namespace symbind {

struct Implementation;
class Kernel;

// How the elements of an array (batch, channels, space…) lie in memory. Arrays a user can see are always plain. Blocked
// is (batch, channels / block, space…, block): only for channels that are a multiple of the block, so no layout has
// padding and elementwise operators work on any.
enum class Layout : uint8_t { plain, channels_last, blocked8, blocked16 };

constexpr int64_t block_of(Layout layout) {  // 1 where there is none
  return layout == Layout::blocked8 ? 8 : layout == Layout::blocked16 ? 16 : 1;
}
std::string_view name_of(Layout layout);
// Are the elements of an array of this shape in the same order in both?
bool same_order(const Shape& shape, Layout a, Layout b);

struct Tensor {
  Shape shape;
  DType dtype = DType::none;
  Layout layout = Layout::plain;

  size_t bytes() const { return static_cast<size_t>(shape.size()) * size_of(dtype); }
};

struct GraphNode {
  NodePtr source;           // operator, parameters, name; shared with the symbol, never changed
  std::vector<int> inputs;  // tensor numbers; auxiliary states come last
  int first_output = 0;     // the outputs are the tensors first_output, first_output + 1, …
  int outputs = 0;
  Context context;
  int random_slot = -1;        // which of the run's draws a random operator takes
  bool keeps_derived = false;  // may what its kernel derives from its inputs outlive a run? build_kernels() decides
  const Implementation* implementation = nullptr;
  std::shared_ptr<Kernel> kernel;

  bool is_variable() const { return source->is_variable(); }
  const OpDef& op() const { return *source->op; }
};

// What kernels keep for a node, shared by all plans of one executor.
using NodeObjects = std::unordered_map<const Node*, std::shared_ptr<void>>;

struct Graph {
  std::vector<GraphNode> nodes;
  std::vector<Tensor> tensors;
  std::vector<int> producer;             // the node of each tensor
  std::vector<int> outputs;              // of the network, then the gradients asked for
  size_t net_outputs = 0;                // how many of `outputs` are the network's
  std::vector<Context> output_contexts;  // where each of `outputs` is wanted; empty: wherever it is made
  size_t forward_nodes = 0;              // nodes from here on belong to the backward part
  bool is_train = false;
  int random_slots = 0;
  std::shared_ptr<NodeObjects> objects;  // none: every kernel is on its own

  // The nodes of a symbol in topological order.
  static Graph from(const Symbol& symbol);

  // Adds a node (and its tensors) at the end; returns its number.
  int append(NodePtr source, std::vector<int> inputs);
  bool is_backward(int node) const { return static_cast<size_t>(node) >= forward_nodes; }
};

// For each input of a node: is it read for its shape and type alone?
std::vector<bool> shape_only_inputs(const GraphNode& node);

}  // namespace symbind
