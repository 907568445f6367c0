// Which forward nodes can be recomputed in backward, and what a choice of them costs in memory and time.
#pragma once

#include <utility>
#include <vector>

#include "symbind/passes/graph.h"

namespace symbind {

struct RecomputeChoice {
  PerNode<bool> recomputed;   // of the forward part: its outputs are not stored for backward
  PerNode<bool> short_lived;  // recomputed twice if needed: to recompute others, and for backward
};

// The nodes in the order they would run. Values are the tensors of the graph, followed by the recomputed ones.
struct RecomputeSchedule {
  struct Step {
    NodeId node;
    int time;            // -1: the node of the graph; otherwise which recomputation of it
    size_t first_input;  // in `inputs`
    size_t first_value;
  };
  std::vector<Step> steps;
  std::vector<size_t> inputs;       // values
  std::vector<TensorId> tensor_of;  // by value
  size_t recomputed = 0;
  double cost = 0;  // of the recomputed nodes
};

class RecomputePlanner {
 public:
  explicit RecomputePlanner(const Graph& given);

  RecomputeSchedule schedule(const RecomputeChoice& choice) const;
  // Estimate of its peak memory.
  size_t bytes_of(const RecomputeSchedule& schedule) const;
  Graph make(const RecomputeSchedule& schedule) const;

  // In working memory.
  size_t bytes(TensorId tensor) const;

  Graph graph;                                      // with the random operators' slots
  PerNode<std::vector<bool>> shape_only;            // by input
  PerNode<std::vector<bool>> recompute_shape_only;  // of the forward part: by input of its recomputation
  PerTensor<bool> is_outside;                       // variables, outputs, gradients
  PerTensor<bool> is_output;                        // a user sees it
  PerTensor<bool> is_saved;                         // computed in forward and read in backward
  // Of the forward part:
  PerNode<size_t> saved_bytes;  // of the outputs that backward reads
  PerNode<bool> recomputable;
  PerNode<bool> short_lived;              // cheap to recompute, from stored tensors or other such nodes
  std::vector<NodeId> short_lived_saved;  // those of which something is saved, the most worthwhile first
  PerNode<double> cost;
  PerNode<size_t> crossing;  // bytes that later forward nodes still read

 private:
  std::pair<int, size_t> saved_for_cost(NodeId node) const;
  void find_saved();
  void find_short_lived();
  void find_crossing();
};

}  // namespace symbind
