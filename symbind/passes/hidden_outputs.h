// A node of the forward part that returns one more array, which its gradient reads instead of a larger one. Both nodes
// stay at their positions.
#pragma once

#include <map>
#include <vector>

#include "symbind/passes/fuse.h"

namespace symbind {

class HiddenOutputs {
 public:
  HiddenOutputs(Graph& graph, const KernelCheck& has_kernel) : graph_(graph), has_kernel_(has_kernel) {}

  // The node becomes `source`, which has the same inputs and `hidden` as its last output; its gradient becomes
  // `gradient_source` with these inputs, where TensorId::none is replaced by the hidden output. Does nothing if the
  // device lacks a kernel for either.
  void put(const GraphNode& node, NodePtr source, const Tensor& hidden, const GraphNode& gradient,
           NodePtr gradient_source, std::vector<TensorId> inputs);
  void apply();

 private:
  struct Forward {
    NodePtr source;
    Tensor hidden;
    TensorId made = TensorId::none;  // the hidden output in the new graph
  };
  struct Gradient {
    NodePtr source;
    std::vector<TensorId> inputs;
    NodeId node;
  };

  Graph& graph_;
  const KernelCheck& has_kernel_;
  std::map<NodeId, Forward> nodes_;
  std::map<NodeId, Gradient> gradients_;
};

}  // namespace symbind
