// A new graph made from an old one, node by node, with nodes left out, replaced or put in between.
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

  // The node an old one becomes; its outputs stand for the old outputs from here on.
  GraphNode& copy(const GraphNode& node);
  // The same with another source (operator, parameters, name) and other inputs, in numbers of the new graph.
  GraphNode& replace(const GraphNode& node, NodePtr source, std::vector<int> inputs);
  // The same for an operator with other outputs: each stands for the old tensor that is named.
  GraphNode& replace(const GraphNode& node, NodePtr source, std::vector<int> inputs,
                     const std::vector<int>& stands_for);
  // A node with one output that holds what tensor `input` (new numbers) holds, in the context of `near`.
  template <class P>
  int insert(const P& params, int input, const std::string& suffix, const Context& context) {
    return insert(op_of<P>(), std::make_shared<P>(params), input, suffix, context);
  }

  int now(int old_tensor) const { return map_[static_cast<size_t>(old_tensor)]; }
  void redirect(int old_tensor, int new_tensor) { map_[static_cast<size_t>(old_tensor)] = new_tensor; }
  Graph& graph() { return graph_; }
  // Must be called when all forward nodes are there, and before any of the backward part.
  void end_of_forward() { graph_.forward_nodes = graph_.nodes.size(); }
  // The result; its outputs are what the old ones have become.
  Graph finish();

 private:
  int insert(const OpDef& op, std::shared_ptr<const void> params, int input, const std::string& suffix,
             const Context& context);

  const Graph& old_;
  Graph graph_;
  std::vector<int> map_;
};

}  // namespace symbind
