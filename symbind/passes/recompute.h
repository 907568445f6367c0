// Memory for time: what forward computed is not kept for backward but recomputed there, from what is kept.
#pragma once

#include <memory>

#include "symbind/passes/graph.h"

namespace symbind {

// The ways there are to do it for one graph that has its backward part and all shapes.
class Recompute {
 public:
  explicit Recompute(const Graph& graph);
  ~Recompute();
  Recompute(const Recompute&) = delete;
  Recompute& operator=(const Recompute&) = delete;

  struct Result {
    Graph graph;
    size_t bytes = 0;       // about what it needs at most at one time
    size_t recomputed = 0;  // how many nodes are recomputed
  };
  // What the network asks for: nodes with the attribute force_mirroring and, where MXNET_BACKWARD_DO_MIRROR is set,
  // whatever is cheap.
  Result as_asked() const;
  // And more, so that the graph needs about so many bytes: as little as possible is recomputed. Where that is more
  // than can be had, the result is the smallest that was found.
  Result within(size_t bytes) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace symbind
