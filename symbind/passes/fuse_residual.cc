// A residual network adds the result of a convolution to an older array. The convolution can do that while it writes
// its result: over the older array where nobody reads that one afterwards, else beside it.
#include <algorithm>
#include <optional>

#include "symbind/ops/conv_fused.h"
#include "symbind/ops/elementwise.h"
#include "symbind/passes/fuse.h"

namespace symbind {

void fuse_residual(Graph& graph) {
  const Readers readers(graph);
  Replacements replacements(graph);
  for (size_t i = 0; i < graph.forward_nodes; ++i) {
    const GraphNode& node = graph.nodes[i];
    const auto number = static_cast<int>(i);
    if (!params_if<Binary<"elemwise_add">>(node)) continue;
    // Of two convolutions the later one makes the sum: the other's result is there by then.
    int summands[] = {node.inputs[0], node.inputs[1]};
    std::sort(std::begin(summands), std::end(summands), [&](int a, int b) {
      return graph.producer[static_cast<size_t>(a)] > graph.producer[static_cast<size_t>(b)];
    });
    for (const int result : summands) {
      const int other = result == node.inputs[0] ? node.inputs[1] : node.inputs[0];
      const int before = graph.producer[static_cast<size_t>(result)];
      const GraphNode& maker = graph.nodes[static_cast<size_t>(before)];
      std::optional<ConvolutionFused> fused = as_fused_convolution(maker);
      const bool takes_a_sum = fused && !fused->sum && fused->act_type.empty();
      if (!takes_a_sum || result == other || !readers.is_only(number, result) || maker.context != node.context ||
          replacements.is_absorbed(before))
        continue;
      fused->sum = true;
      fused->sum_is_spent = readers.last(other) == number && !producer_of(graph, other).is_variable();
      std::vector<int> inputs = maker.inputs;
      inputs.push_back(other);
      replacements.put(number, {fused_node(*node.source, *fused), std::move(inputs), {node.first_output}}, before);
      break;
    }
  }
  replacements.apply();
}

}  // namespace symbind
