// A network that computes in 16 bits casts its float32 weights before each convolution, in every run. In inference the
// convolution reads the float32 weights and rounds them itself: it caches what it derives from the user's arrays, and
// folded norms are rounded together with the weights, not after them.
#include <algorithm>

#include "symbind/ops/amp.h"
#include "symbind/ops/cast.h"
#include "symbind/ops/conv_fused.h"
#include "symbind/passes/fuse.h"

namespace symbind {
namespace {

class Rounding {
 public:
  explicit Rounding(Graph& graph)
      : graph_(graph),
        readers_(graph),
        updated_(updated_tensors(graph)),
        replacements_(graph),
        replaced_reads_(graph.tensors.size(), 0) {}

  void run() {
    for (const GraphNode& node : graph_.nodes) visit(node);
    for (const GraphNode& node : graph_.nodes)
      if (is_cast_of_weight(node) && replaced_reads_[node.first_output] == readers_.count(node.first_output))
        replacements_.absorb(node.id);
    replacements_.apply();
  }

 private:
  // A cast of a float32 variable that no node updates.
  bool is_cast_of_weight(const GraphNode& node) const {
    if (!params_if<AmpCast>(node) && !params_if<Cast>(node)) return false;
    const TensorId weight = node.inputs[0];
    const GraphNode& variable = graph_.producer(weight);
    return variable.is_variable() && variable.context == node.context && !updated_[weight] &&
           graph_.tensor(weight).dtype == DType::float32;
  }

  void visit(const GraphNode& node) {
    const std::optional<ConvolutionFused> fused = as_fused_convolution(node);
    if (!fused) return;
    const DType dtype = graph_.tensor(node.first_output).dtype;
    if (dtype != DType::float16 && dtype != DType::bfloat16) return;
    std::vector<size_t> rounded{1};
    if (const int bias = inputs_of(*fused).bias; bias >= 0) rounded.push_back(static_cast<size_t>(bias));
    const auto is_cast = [&](size_t index) { return is_cast_of_weight(graph_.producer(node.inputs[index])); };
    if (!std::all_of(rounded.begin(), rounded.end(), is_cast)) return;
    std::vector<TensorId> inputs = node.inputs;
    for (const size_t index : rounded) {
      ++replaced_reads_[inputs[index]];
      inputs[index] = graph_.producer(inputs[index]).inputs[0];
    }
    replacements_.put(node.id, {fused_node(*node.source, *fused), std::move(inputs), {node.first_output}});
  }

  Graph& graph_;
  const Readers readers_;
  const PerTensor<bool> updated_;
  Replacements replacements_;
  PerTensor<int> replaced_reads_;  // how many readers of a cast read its input instead
};

}  // namespace

void round_weights_once(Graph& graph) {
  if (!graph.has_backward()) Rounding(graph).run();
}

}  // namespace symbind
