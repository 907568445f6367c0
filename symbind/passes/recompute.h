// Trades time for memory: forward results are not stored for backward but recomputed there from stored ones.
#pragma once

#include <memory>

#include "symbind/passes/graph.h"

namespace symbind {

// The possible choices for one graph with its backward part and all shapes.
class Recompute {
 public:
  explicit Recompute(const Graph& graph);
  ~Recompute();
  Recompute(const Recompute&) = delete;
  Recompute& operator=(const Recompute&) = delete;

  struct Result {
    Graph graph;
    size_t bytes = 0;       // estimate of its peak memory
    size_t recomputed = 0;  // how many nodes are recomputed
  };
  // The nodes that are requested: those with the attribute force_mirroring and, if MXNET_BACKWARD_DO_MIRROR is set, all
  // cheap ones.
  Result as_requested() const;
  // More nodes, so that the graph needs about `bytes`: as little as possible is recomputed. If `bytes` cannot be
  // reached, the result is the smallest that was found.
  Result within(size_t bytes) const;
  // The same, but only nodes that are cheap to recompute from stored tensors.
  Result within_cheaply(size_t bytes) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace symbind
