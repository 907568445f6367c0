// The end of a residual unit is the ReLU of a sum with a BatchNorm. Its gradient arrives as the sum of two, of which
// one is usually the gradient of the data of the next unit's first convolution. That convolution can add the other one
// to its products, apply the gradient of ReLU and add up the sums per channel that the gradient of the BatchNorm needs,
// all while it writes its result: instead of writing its gradient, from which a pass computes the rest. Both nodes stay
// at their positions. Runs after the gradients of BatchNorm, sum and ReLU have been fused, and read signs where that is
// possible.
#include <map>

#include "symbind/ops/conv_statistics.h"
#include "symbind/ops/relu_signs.h"
#include "symbind/passes/fuse.h"
#include "symbind/passes/rewrite.h"

namespace symbind {
namespace {

// The inputs of BatchNormAddReluGrad, and of BatchNormSignsGrad, whose `output` are the signs.
enum NormInput : size_t { out_grad, output, data, gamma, mean, var, more_grad };
constexpr int sum_grad = 3;  // among its outputs

class GradientSumsFusion {
 public:
  GradientSumsFusion(Graph& graph, const KernelCheck& has_kernel)
      : graph_(graph), readers_(graph), has_kernel_(has_kernel) {}

  void run() {
    for (const GraphNode& node : graph_.backward_part()) find(node);
    if (norms_.empty()) return;
    Rewriter rewriter(graph_);
    rewriter.for_each_node([&](const GraphNode& node) { rewrite(rewriter, node); });
    graph_ = rewriter.finish();
  }

 private:
  struct Fused {
    NodePtr convolution, norm;  // the sources of the two new nodes
    NodeId convolution_id, norm_id;
    TensorId other;  // the gradient that is added
    TensorId first_sum = TensorId::none;
  };

  // The convolution whose data gradient, read by the norm alone, is the gradient that is computed last; or null.
  const GraphNode* convolution_before(const GraphNode& norm, TensorId gradient, TensorId other) const {
    const GraphNode& node = graph_.producer(gradient);
    if (!params_if<ConvolutionGradData>(node) || node.context != norm.context || gradient == other ||
        !readers_.is_only(norm.id, gradient))
      return nullptr;
    for (const TensorId input : {other, norm.inputs[output], norm.inputs[data], norm.inputs[mean]})
      if (graph_.producer_id(input) >= node.id) return nullptr;
    return &node;
  }

  void find(const GraphNode& norm) {
    const auto* const with_signs = params_if<BatchNormSignsGrad>(norm);
    const BatchNormAddReluGrad* const params = with_signs ? with_signs : params_if<BatchNormAddReluGrad>(norm);
    if (!params || !params->two_grads) return;
    const TensorId gradients[] = {norm.inputs[out_grad], norm.inputs[more_grad]};
    for (const int i : {0, 1}) {
      const GraphNode* const convolution = convolution_before(norm, gradients[i], gradients[1 - i]);
      if (!convolution) continue;
      const auto& convolved = *params_if<ConvolutionGradData>(*convolution);
      const Shape& shape = graph_.tensor(norm.inputs[data]).shape;
      if (shape.axis(params->axis, norm.source->name) != (is_channels_last(convolved.layout) ? shape.rank() - 1 : 1))
        continue;
      Fused fused{fused_node(*convolution->source, ConvolutionGradAddRelu{convolved, with_signs != nullptr}),
                  fused_node(*norm.source, BatchNormGradFromSums{*params}), convolution->id, norm.id, gradients[1 - i]};
      // The norm is asked about first: for a convolution kernels may be timed.
      if (!accepts_norm(norm, fused) || !accepts_convolution(*convolution, norm, fused)) continue;
      convolutions_[convolution->id] = norm.id;
      norms_.emplace(norm.id, std::move(fused));
      return;
    }
  }

  Tensor sum_of(const GraphNode& norm) const { return graph_.tensor(norm.inputs[mean]); }

  bool accepts_norm(const GraphNode& norm, const Fused& fused) const {
    std::vector<Tensor> inputs{graph_.tensor(norm.first_output + sum_grad)}, outputs;
    for (const NormInput input : {data, gamma, mean, var}) inputs.push_back(graph_.tensor(norm.inputs[input]));
    inputs.insert(inputs.end(), 2, sum_of(norm));
    for (int i = 0; i < sum_grad; ++i) outputs.push_back(graph_.tensor(norm.first_output + i));
    return has_kernel_(graph_, norm.context, *fused.norm, inputs, outputs);
  }

  bool accepts_convolution(const GraphNode& convolution, const GraphNode& norm, const Fused& fused) const {
    std::vector<Tensor> inputs;
    for (const TensorId input : convolution.inputs) inputs.push_back(graph_.tensor(input));
    inputs.push_back(graph_.tensor(fused.other));
    for (const NormInput input : {output, data, mean}) inputs.push_back(graph_.tensor(norm.inputs[input]));
    const Tensor sum = sum_of(norm);
    return has_kernel_(graph_, convolution.context, *fused.convolution, inputs,
                       std::vector<Tensor>{graph_.tensor(norm.first_output + sum_grad), sum, sum});
  }

  void rewrite(Rewriter& rewriter, const GraphNode& node) {
    std::vector<TensorId> inputs;
    if (const auto found = convolutions_.find(node.id); found != convolutions_.end()) {
      const GraphNode& norm = graph_.node(found->second);
      Fused& fused = norms_.at(norm.id);
      for (const TensorId input : node.inputs) inputs.push_back(rewriter.now(input));
      inputs.push_back(rewriter.now(fused.other));
      for (const NormInput input : {output, data, mean}) inputs.push_back(rewriter.now(norm.inputs[input]));
      const Tensor sum = sum_of(norm);
      fused.first_sum =
          rewriter.replace(node, fused.convolution, std::move(inputs), {norm.first_output + sum_grad}).first_output + 1;
      for (const int i : {0, 1}) rewriter.graph().tensor(fused.first_sum + i) = sum;
    } else if (const auto norm = norms_.find(node.id); norm != norms_.end()) {
      inputs.push_back(rewriter.now(node.first_output + sum_grad));
      for (const NormInput input : {data, gamma, mean, var}) inputs.push_back(rewriter.now(node.inputs[input]));
      for (const int i : {0, 1}) inputs.push_back(norm->second.first_sum + i);
      rewriter.replace(node, norm->second.norm, std::move(inputs),
                       {node.first_output, node.first_output + 1, node.first_output + 2});
    } else {
      rewriter.copy(node);
    }
  }

  Graph& graph_;
  const Readers readers_;
  const KernelCheck& has_kernel_;
  std::map<NodeId, NodeId> convolutions_;  // the norm of each that is fused
  std::map<NodeId, Fused> norms_;
};

}  // namespace

void fuse_gradient_sums(Graph& graph, const KernelCheck& has_kernel) { GradientSumsFusion(graph, has_kernel).run(); }
void fuse_gradient_sums(Graph& graph) { fuse_gradient_sums(graph, fused_kernel_check()); }

}  // namespace symbind
