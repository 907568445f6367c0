#include "symbind/backend/composed.h"

#include <algorithm>

#include "symbind/backend/sub_plan.h"
#include "symbind/backend/sync_batch_norm.h"
#include "symbind/graph/attributes.h"
#include "symbind/ops/attention.h"
#include "symbind/ops/batch_norm.h"
#include "symbind/ops/batch_norm_pair.h"
#include "symbind/ops/batch_norm_recompute.h"
#include "symbind/ops/cast.h"
#include "symbind/ops/contrib.h"
#include "symbind/ops/conv_statistics.h"
#include "symbind/ops/ctc.h"
#include "symbind/ops/image.h"
#include "symbind/ops/pool_v1.h"
#include "symbind/ops/relu_signs.h"
#include "symbind/ops/storage.h"
#include "symbind/ops/sync_batch_norm.h"

namespace symbind {
namespace {

bool is_empty(const NodeView& node) {
  for (const Tensor& output : node.outputs)
    if (output.shape.size() > 0) return false;
  return true;
}

std::unique_ptr<SubPlan> compile(const NodeView& node, const Symbol& network, const ComposedInputs& in) {
  return std::make_unique<SubPlan>(
      network, in.symbols, node.inputs,
      SubPlanOptions{.context = node.context,
                     .is_train = node.is_train,
                     .random_slot = std::max(node.random_slot, 0),
                     .may_lack_outputs = node.outputs.size() > 1});  // a single output always exists
}

// Casts results to the types of the node's outputs: arithmetic with booleans returns numbers.
std::unique_ptr<SubPlan> compile_as_needed(const NodeView& node, const Symbol& network, const ComposedInputs& in) {
  auto plan = compile(node, network, in);
  std::vector<Symbol> outputs;
  bool casts = false;
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    const DType wanted = node.outputs[i].dtype;
    const bool differs = plan->output(i).dtype != wanted;
    outputs.push_back(differs ? cast(network[i], {.dtype = wanted}) : network[i]);
    casts |= differs;
  }
  if (casts) plan = compile(node, Symbol::group(outputs), in);
  for (size_t i = 0; i < node.outputs.size(); ++i)
    require(plan->output(i).shape == node.outputs[i].shape, node.where(), " the network that it is made of computes ",
            plan->output(i).shape, " where ", node.outputs[i].shape, " is needed");
  return plan;
}

class Composed final : public Kernel {
 public:
  Composed(const NodeView& node, const Symbol& network, const ComposedInputs& in)
      : plan_(compile_as_needed(node, network, in)), inputs_(node.inputs.size()), outputs_(node.outputs.size()) {
    scratch_bytes = plan_->scratch_bytes();
    capturable = plan_->capturable();
  }
  void run(const Args& args) override {
    plan_->forward(args, {.inputs = {args.inputs, inputs_}, .outputs = {args.outputs, outputs_}});
  }

 private:
  std::unique_ptr<SubPlan> plan_;
  size_t inputs_, outputs_;
};

template <class P>
void add(ImplementationTable& table) {
  Implementation implementation;
  implementation.name = "composed";
  implementation.refuse = [](const NodeView&) { return std::string(); };
  implementation.build = [](const NodeView& node) -> std::unique_ptr<Kernel> {
    const NameManager names;  // does not advance the counters of the user's network
    const ComposedInputs in = composed_inputs(node);
    return build_composed(node, network_of(node.as<P>(), in), in);
  };
  implementation.cache_when_invoked = true;
  table.add<P>(std::move(implementation));
}

}  // namespace

ComposedInputs composed_inputs(const NodeView& node) {
  ComposedInputs in;
  const Names names = node.op.all_inputs(node.params);
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    in.symbols.push_back(Symbol::variable(names[i]));
    in.shapes.push_back(node.inputs[i].shape);
    in.types.push_back(node.inputs[i].dtype);
  }
  for (const Tensor& output : node.outputs) {
    in.output_shapes.push_back(output.shape);
    in.output_types.push_back(output.dtype);
  }
  return in;
}

std::unique_ptr<Kernel> build_composed(const NodeView& node, const Symbol& network, const ComposedInputs& in) {
  if (is_empty(node)) return make_kernel([](const Args&) {});
  return std::make_unique<Composed>(node, network, in);
}

void add_composed(ImplementationTable& table) {
  add<SelfAttentionQK>(table);
  add<SelfAttentionValues>(table);
  add<CrossAttentionQK>(table);
  add<CrossAttentionValues>(table);
  add<Quadratic>(table);
  add<DivSqrtDim>(table);
  add<RoundSte>(table);
  add<SignSte>(table);
  add<PoolingV1>(table);
  add<PoolingV1Grad>(table);
  add<SparseRetain>(table);
  add<CountNonzero>(table);
  add<SquareSum>(table);
  add<ZerosWithoutDtype>(table);
  add<OnehotEncode>(table);
  add<WarpCTC>(table);
  add_sync_batch_norm(table);
  add<BatchNormWithReLU>(table);
  add<BatchNormAddRelu>(table);
  add<BatchNormAddReluGrad>(table);
  add<BatchNormGivenSums>(table);
  add<BatchNormSigns>(table);
  add<BatchNormSignsGrad>(table);
  add<ConvolutionStatistics>(table);
  add<ConvolutionGradAddRelu>(table);
  add<BatchNormGradFromSums>(table);
  add<BatchNormAddReluRecompute>(table);
  add<BatchNormReluGradOutput>(table);
  add<BatchNormPair>(table);
  add<BatchNormPairGrad>(table);
  add<BatchNormPairGradFromSums>(table);
  add<ImageToTensor>(table);
  add<ImageToTensorGrad>(table);
  add<ImageCrop>(table);
  add<ImageCropGrad>(table);
  add<ImageFlip<"_image_flip_left_right">>(table);
  add<ImageFlip<"_image_flip_top_bottom">>(table);
}

}  // namespace symbind
