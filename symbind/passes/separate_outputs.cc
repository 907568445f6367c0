#include <algorithm>
#include <set>

#include "symbind/ops/elementwise.h"
#include "symbind/passes/passes.h"
#include "symbind/passes/rewrite.h"

namespace symbind {

void separate_outputs(Graph& graph) {
  std::set<TensorId> taken;
  std::vector<bool> needs_copy(graph.outputs.size(), false);
  bool any = false;
  for (size_t i = 0; i < graph.outputs.size(); ++i) {
    const TensorId tensor = graph.outputs[i];
    const GraphNode& producer = graph.producer(tensor);
    // A gradient that is a forward result is copied too: gradient arrays must change in backward, not before.
    const bool made_early = i >= graph.net_outputs && !graph.is_backward(producer.id);
    needs_copy[i] = producer.is_variable() || made_early || !taken.insert(tensor).second;
    any |= needs_copy[i];
  }
  if (!any) return;

  Rewriter rewriter(graph);
  std::vector<TensorId> made(graph.outputs.size(), TensorId::none);
  const auto copy_outputs = [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      if (!needs_copy[i]) continue;
      const TensorId now = rewriter.now(graph.outputs[i]);
      const Context home = graph.producer(graph.outputs[i]).context;
      made[i] = rewriter.insert(Unary<"_copy">{}, now, "_copy", home);
    }
  };
  rewriter.for_each_node([&](const GraphNode& node) { rewriter.copy(node); },
                         [&] { copy_outputs(0, graph.net_outputs); });
  copy_outputs(graph.net_outputs, graph.outputs.size());
  graph = rewriter.finish();
  for (size_t i = 0; i < made.size(); ++i)
    if (made[i] != TensorId::none) graph.outputs[i] = made[i];
}

}  // namespace symbind
