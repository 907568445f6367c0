// The gradient of a residual unit's end, BatchNorm, sum and ReLU, reads the result of ReLU only to know where it was
// above zero. A device may store that as bits when it writes the result: the gradient then reads these instead. Runs
// after the norm has been fused with what precedes and follows it.
#include "symbind/ops/relu_signs.h"
#include "symbind/passes/hidden_outputs.h"

namespace symbind {
namespace {

// The norm of any form with a sum and ReLU, with signs; none: the node is another one.
std::optional<BatchNormSigns> with_signs(const GraphNode& node) {
  if (const auto* norm = params_if<BatchNormAddRelu>(node)) return BatchNormSigns{*norm, false};
  const auto* given = params_if<BatchNormGivenSums>(node);
  return given && given->add && given->relu ? std::optional(BatchNormSigns{*given, true}) : std::nullopt;
}

}  // namespace

void fuse_relu_signs(Graph& graph, const KernelCheck& has_kernel) {
  HiddenOutputs found(graph, has_kernel);
  for (const GraphNode& node : graph.backward_part()) {
    const auto* params = params_if<BatchNormAddReluGrad>(node);
    if (!params) continue;
    const TensorId output = node.inputs[1];
    const GraphNode& norm = graph.producer(output);
    const std::optional<BatchNormSigns> made = with_signs(norm);
    const Shape& shape = graph.tensor(output).shape;
    if (!made || output != norm.first_output || norm.context != node.context || !signs_fill_bytes(shape, params->axis))
      continue;
    std::vector<TensorId> inputs = node.inputs;
    inputs[1] = TensorId::none;
    found.put(norm, fused_node(*norm.source, *made), {shape_of_signs(shape, params->axis), DType::uint8}, node,
              fused_node(*node.source, BatchNormSignsGrad{*params}), std::move(inputs));
  }
  found.apply();
}
void fuse_relu_signs(Graph& graph) { fuse_relu_signs(graph, fused_kernel_check()); }

}  // namespace symbind
