// A residual network adds the result of a convolution to an older array. The convolution can add it while it writes its
// result: in place of the older array if that is not read afterwards, else into a new one.
#include <algorithm>
#include <optional>

#include "symbind/ops/conv_fused.h"
#include "symbind/ops/elementwise.h"
#include "symbind/passes/fuse.h"

namespace symbind {

void fuse_residual(Graph& graph) { fuse_residual(graph, device_check()); }

void fuse_residual(Graph& graph, const KernelCheck& runs_on_device) {
  const Readers readers(graph);
  Replacements replacements(graph);
  for (const GraphNode& node : graph.forward_part()) {
    if (!params_if<Binary<"elemwise_add">>(node)) continue;
    // Of two convolutions the later one computes the sum: the other's result is available by then.
    TensorId summands[] = {node.inputs[0], node.inputs[1]};
    std::sort(std::begin(summands), std::end(summands),
              [&](TensorId a, TensorId b) { return graph.producer_id(a) > graph.producer_id(b); });
    for (const TensorId result : summands) {
      const TensorId other = result == node.inputs[0] ? node.inputs[1] : node.inputs[0];
      const GraphNode& maker = graph.producer(result);
      std::optional<ConvolutionFused> fused = as_fused_convolution(maker);
      const bool takes_a_sum = fused && !fused->sum && fused->act_type.empty();
      if (!takes_a_sum || result == other || !readers.is_only(node.id, result) || maker.context != node.context ||
          replacements.is_absorbed(maker.id))
        continue;
      fused->sum = true;
      fused->sum_is_spent = readers.last(other) == node.id && !graph.producer(other).is_variable();
      std::vector<TensorId> inputs = maker.inputs;
      inputs.push_back(other);
      Replacement replacement{fused_node(*node.source, *fused), std::move(inputs), {node.first_output}};
      if (!accepts(runs_on_device, graph, node.context, replacement)) continue;
      replacements.put(node.id, std::move(replacement), maker.id);
      break;
    }
  }
  replacements.apply();
}

}  // namespace symbind
