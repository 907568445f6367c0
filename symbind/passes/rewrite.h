// Builds a new graph from an old one, node by node, with nodes removed, replaced or inserted.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "symbind/graph/builder.h"
#include "symbind/passes/graph.h"

namespace symbind {

class Rewriter {
 public:
  explicit Rewriter(const Graph& old);

  // Copies an old node; from now on its outputs replace the old ones.
  GraphNode& copy(const GraphNode& node);
  // The same with another source (operator, parameters, name) and other inputs, of the new graph.
  GraphNode& replace(const GraphNode& node, NodePtr source, std::vector<TensorId> inputs);
  // The same for an operator with other outputs: each replaces the given old tensor.
  GraphNode& replace(const GraphNode& node, NodePtr source, std::vector<TensorId> inputs,
                     const std::vector<TensorId>& replaced);
  // A node with one output that has the value of tensor `input` of the new graph.
  template <class P>
  TensorId insert(const P& params, TensorId input, const std::string& suffix, const Context& context) {
    return insert(op_of<P>(), std::make_shared<P>(params), input, suffix, context);
  }

  TensorId now(TensorId old_tensor) const { return map_[old_tensor]; }
  void redirect(TensorId old_tensor, TensorId new_tensor) { map_[old_tensor] = new_tensor; }
  Graph& graph() { return graph_; }
  // Visits the old nodes in order. After those of the forward part, `at_end_of_forward` may add more to it.
  template <class Visit, class AtEnd>
  void for_each_node(Visit visit, AtEnd at_end_of_forward) {
    const auto end_forward = [&] {
      at_end_of_forward();
      end_of_forward();
    };
    for (const GraphNode& node : old_.nodes) {
      if (index_of(node.id) == old_.forward_nodes) end_forward();
      visit(node);
    }
    if (!old_.has_backward()) end_forward();
  }
  template <class Visit>
  void for_each_node(Visit visit) {
    for_each_node(visit, [] {});
  }
  // If nodes are not visited by the function above: call it after all forward nodes and before any backward node.
  void end_of_forward() { graph_.forward_nodes = graph_.nodes.size(); }
  // The result; its outputs correspond to the old ones.
  Graph finish();

 private:
  TensorId insert(const OpDef& op, std::shared_ptr<const void> params, TensorId input, const std::string& suffix,
                  const Context& context);

  const Graph& old_;
  Graph graph_;
  PerTensor<TensorId> map_;  // the new tensor of each old one
};

}  // namespace symbind
