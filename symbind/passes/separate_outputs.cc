#include <algorithm>
#include <set>

#include "symbind/ops/elementwise.h"
#include "symbind/passes/passes.h"
#include "symbind/passes/rewrite.h"

namespace symbind {

void separate_outputs(Graph& graph) {
  std::set<int> taken;
  std::vector<bool> needs_copy(graph.outputs.size(), false);
  bool any = false;
  for (size_t i = 0; i < graph.outputs.size(); ++i) {
    const int tensor = graph.outputs[i];
    const auto producer = static_cast<size_t>(graph.producer[static_cast<size_t>(tensor)]);
    // A gradient that forward computed already is copied too: gradients change in backward, not before.
    const bool made_early = i >= graph.net_outputs && producer < graph.forward_nodes;
    needs_copy[i] = graph.nodes[producer].is_variable() || made_early || !taken.insert(tensor).second;
    any |= needs_copy[i];
  }
  if (!any) return;

  Rewriter rewriter(graph);
  std::vector<int> made(graph.outputs.size(), -1);
  const auto copy_outputs = [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      if (!needs_copy[i]) continue;
      const int now = rewriter.now(graph.outputs[i]);
      const Context home =
          graph.nodes[static_cast<size_t>(graph.producer[static_cast<size_t>(graph.outputs[i])])].context;
      made[i] = rewriter.insert(Unary<"_copy">{}, now, "_copy", home);
    }
  };
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    if (i == graph.forward_nodes) {
      copy_outputs(0, graph.net_outputs);
      rewriter.end_of_forward();
    }
    rewriter.copy(graph.nodes[i]);
  }
  if (graph.forward_nodes == graph.nodes.size()) {
    copy_outputs(0, graph.net_outputs);
    rewriter.end_of_forward();
  }
  copy_outputs(graph.net_outputs, graph.outputs.size());
  graph = rewriter.finish();
  for (size_t i = 0; i < made.size(); ++i)
    if (made[i] >= 0) graph.outputs[i] = made[i];
}

}  // namespace symbind
