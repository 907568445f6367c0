// A training BatchNorm reads its data twice, for the statistics and to normalise it. Where the data is the result of a
// convolution, a device may add up the statistics while it writes that result: the convolution then returns the sums of
// each channel as hidden outputs, which the BatchNorm reads. Both nodes stay at their positions. Runs after BatchNorm
// has been fused with what follows it.
#include <map>

#include "symbind/ops/batch_norm.h"
#include "symbind/ops/conv_statistics.h"
#include "symbind/passes/fuse.h"
#include "symbind/passes/rewrite.h"

namespace symbind {
namespace {

constexpr size_t first_sum = 3;  // where the sums are among the inputs of BatchNormGivenSums, after beta

// A BatchNorm of any form as one that is given its sums; none: the node is none, or does not use the batch's
// statistics.
std::optional<BatchNormGivenSums> as_given_sums(const Graph& graph, const GraphNode& node) {
  std::optional<BatchNormGivenSums> given;
  if (const auto* norm = params_if<BatchNorm>(node))
    given = {*norm, false, false};
  else if (const auto* norm_relu = params_if<BatchNormRelu>(node))
    given = {*norm_relu, false, true};
  else if (const auto* norm_add_relu = params_if<BatchNormAddRelu>(node))
    given = {*norm_add_relu, true, true};
  if (given && !uses_batch_statistics(*given, graph.is_train)) given.reset();
  return given;
}

// The convolution whose result the norm reads, with the same axis of channels; or null. With a bias it is left alone:
// there is no comparison with a convolution that applies the bias and a separate pass for the statistics.
const GraphNode* convolution_before(const Graph& graph, const GraphNode& norm, const BatchNorm& params) {
  const TensorId data = norm.inputs[0];
  const GraphNode& producer = graph.producer(data);
  const auto* convolution = params_if<Convolution>(producer);
  if (!convolution || !convolution->no_bias || producer.context != norm.context) return nullptr;
  const Shape& shape = graph.tensor(data).shape;
  const int channels = is_channels_last(convolution->layout) ? shape.rank() - 1 : 1;
  return shape.axis(params.axis, norm.source->name) == channels ? &producer : nullptr;
}

class StatisticsFusion {
 public:
  StatisticsFusion(Graph& graph, const KernelCheck& has_kernel) : graph_(graph), has_kernel_(has_kernel) {}

  void run() {
    for (const GraphNode& node : graph_.forward_part()) find(node);
    if (norms_.empty()) return;
    Rewriter rewriter(graph_);
    rewriter.for_each_node([&](const GraphNode& node) { rewrite(rewriter, node); });
    graph_ = rewriter.finish();
  }

 private:
  struct Sums {
    NodePtr source;  // of the convolution that computes them; null: the device does not
    Tensor tensor;   // each of the two
    TensorId first = TensorId::none;
  };
  struct Norm {
    NodePtr source;
    NodeId convolution;
  };

  // One element per channel, of the type of the norm's statistics.
  Tensor sum_of(const GraphNode& norm) const { return graph_.tensor(norm.inputs[1]); }

  bool has_kernel(const GraphNode& node, const Node& source, const std::vector<Tensor>& inputs,
                  const std::vector<Tensor>& outputs) const {
    return has_kernel_(graph_, node.context, source, inputs, outputs);
  }

  void find(const GraphNode& norm) {
    const std::optional<BatchNormGivenSums> params = as_given_sums(graph_, norm);
    if (!params) return;
    const GraphNode* const convolution = convolution_before(graph_, norm, *params);
    if (!convolution) return;
    NodePtr source = fused_node(*norm.source, *params);
    // The norm is asked about first: for a convolution engines may be timed.
    if (!accepts(norm, *source) || !accepts(*convolution, sum_of(norm))) return;
    norms_[norm.id] = {std::move(source), convolution->id};
  }

  bool accepts(const GraphNode& norm, const Node& source) const {
    std::vector<Tensor> inputs, outputs;
    for (const TensorId input : norm.inputs) inputs.push_back(graph_.tensor(input));
    inputs.insert(inputs.begin() + first_sum, 2, sum_of(norm));
    for (int i = 0; i < norm.outputs; ++i) outputs.push_back(graph_.tensor(norm.first_output + i));
    return has_kernel(norm, source, inputs, outputs);
  }

  bool accepts(const GraphNode& convolution, const Tensor& sum) {
    const auto [entry, is_new] = sums_.try_emplace(convolution.id);
    if (is_new) {
      entry->second.tensor = sum;
      std::vector<Tensor> inputs;
      for (const TensorId input : convolution.inputs) inputs.push_back(graph_.tensor(input));
      NodePtr source = fused_node(*convolution.source, ConvolutionStatistics{*params_if<Convolution>(convolution)});
      if (has_kernel(convolution, *source, inputs, {graph_.tensor(convolution.first_output), sum, sum}))
        entry->second.source = std::move(source);
    }
    return entry->second.source != nullptr;
  }

  void rewrite(Rewriter& rewriter, const GraphNode& node) {
    std::vector<TensorId> inputs;
    for (const TensorId input : node.inputs) inputs.push_back(rewriter.now(input));
    if (const auto sums = sums_.find(node.id); sums != sums_.end() && sums->second.source) {
      Sums& made = sums->second;
      made.first = rewriter.replace(node, made.source, std::move(inputs), {node.first_output}).first_output + 1;
      for (const int i : {0, 1}) rewriter.graph().tensor(made.first + i) = made.tensor;
    } else if (const auto norm = norms_.find(node.id); norm != norms_.end()) {
      const TensorId first = sums_.at(norm->second.convolution).first;
      inputs.insert(inputs.begin() + first_sum, {first, first + 1});
      rewriter.replace(node, norm->second.source, std::move(inputs));
    } else {
      rewriter.copy(node);
    }
  }

  Graph& graph_;
  const KernelCheck& has_kernel_;
  std::map<NodeId, Sums> sums_;   // by convolution
  std::map<NodeId, Norm> norms_;  // that are given their sums
};

}  // namespace

void fuse_statistics(Graph& graph, const KernelCheck& has_kernel) { StatisticsFusion(graph, has_kernel).run(); }
void fuse_statistics(Graph& graph) { fuse_statistics(graph, fused_kernel_check()); }

}  // namespace symbind
