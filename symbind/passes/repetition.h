// Which forward nodes could be made again in backward, and what a choice of them leads to.
#pragma once

#include <vector>

#include "symbind/passes/graph.h"

namespace symbind {

struct RepeatChoice {
  std::vector<bool> again;  // by forward node: made again, not kept
  std::vector<bool> brief;  // made again twice if need be: on the way to others, and for backward
};

// The nodes in the order they would run. Values are the tensors of the graph, and behind them those made again.
struct RepeatSchedule {
  struct Step {
    int node;
    int time;         // -1: as it stands in the graph; otherwise which time it is made again
    int first_input;  // in `inputs`
    int first_value;
  };
  std::vector<Step> steps;
  std::vector<int> inputs;
  std::vector<int> tensor_of;  // by value
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

  bool is_forward(int node) const { return static_cast<size_t>(node) < graph.forward_nodes; }
  // In working memory.
  size_t bytes(int tensor) const;

  Graph graph;                                // with the random operators' slots
  std::vector<std::vector<bool>> shape_only;  // by node and input
  std::vector<bool> is_outside;               // by tensor: variables, outputs, gradients
  std::vector<bool> is_output;                // by tensor: a user sees it
  std::vector<bool> is_saved;                 // by tensor: made in forward and read in backward
  std::vector<size_t> saved_bytes;            // by forward node: of the outputs that backward reads
  std::vector<bool> repeatable;               // by forward node
  std::vector<bool> brief;       // by forward node: cheap, and made from what is kept or from other such nodes
  std::vector<int> brief_saved;  // those of which something is saved, the largest first
  std::vector<double> cost;      // by forward node
  std::vector<size_t> crossing;  // by forward node: the bytes that forward still reads behind it

 private:
  void find_saved();
  void find_brief();
  void find_crossing();
};

}  // namespace symbind
