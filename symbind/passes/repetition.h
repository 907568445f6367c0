// Which forward nodes could be made again in backward, and what a choice of them leads to.
#pragma once

#include <vector>

#include "symbind/passes/graph.h"

namespace symbind {

struct RepeatChoice {
  PerNode<bool> again;  // of the forward part: made again, not kept
  PerNode<bool> brief;  // made again twice if need be: on the way to others, and for backward
};

// The nodes in the order they would run. Values are the tensors of the graph, and behind them those made again.
struct RepeatSchedule {
  struct Step {
    NodeId node;
    int time;            // -1: as it stands in the graph; otherwise which time it is made again
    size_t first_input;  // in `inputs`
    size_t first_value;
  };
  std::vector<Step> steps;
  std::vector<size_t> inputs;       // values
  std::vector<TensorId> tensor_of;  // by value
  size_t repeated = 0;
  double cost = 0;  // of what is made again
};

class Repetition {
 public:
  explicit Repetition(const Graph& given);

  RepeatSchedule schedule(const RepeatChoice& choice) const;
  // About what it needs at most at one time.
  size_t bytes_of(const RepeatSchedule& schedule) const;
  Graph make(const RepeatSchedule& schedule) const;

  // In working memory.
  size_t bytes(TensorId tensor) const;

  Graph graph;                            // with the random operators' slots
  PerNode<std::vector<bool>> shape_only;  // by input
  PerTensor<bool> is_outside;             // variables, outputs, gradients
  PerTensor<bool> is_output;              // a user sees it
  PerTensor<bool> is_saved;               // made in forward and read in backward
  // Of the forward part:
  PerNode<size_t> saved_bytes;  // of the outputs that backward reads
  PerNode<bool> repeatable;
  PerNode<bool> brief;              // cheap, and made from what is kept or from other such nodes
  std::vector<NodeId> brief_saved;  // those of which something is saved, the largest first
  PerNode<double> cost;
  PerNode<size_t> crossing;  // the bytes that forward still reads behind it

 private:
  void find_saved();
  void find_brief();
  void find_crossing();
};

}  // namespace symbind
