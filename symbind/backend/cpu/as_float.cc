// Half-precision operators as float32 ones: arrays are converted in scratch, and the best float32 implementation runs.
// For operators whose work far exceeds the conversion. Lower priority than implementations that compute in half
// precision directly.
#include "symbind/backend/cpu/as_float.h"

#include <algorithm>
#include <optional>

#include "symbind/backend/cpu/convert_array.h"
#include "symbind/core/error.h"
#include "symbind/ops/batch_norm.h"
#include "symbind/ops/conv.h"
#include "symbind/ops/conv_fused.h"
#include "symbind/ops/dot.h"
#include "symbind/ops/fully_connected.h"
#include "symbind/ops/pool.h"
#include "symbind/passes/target.h"

namespace symbind::cpu_backend {
namespace {

constexpr size_t alignment = 64;

size_t aligned(size_t bytes) { return (bytes + alignment - 1) / alignment * alignment; }

bool is_half(DType dtype) { return dtype == DType::float16 || dtype == DType::bfloat16; }

// The node with its half-precision arrays in float32.
class FloatNode {
 public:
  explicit FloatNode(const NodeView& node)
      : node_(node),
        inputs_(node.inputs.begin(), node.inputs.end()),
        outputs_(node.outputs.begin(), node.outputs.end()) {
    for (auto* tensors : {&inputs_, &outputs_})
      for (Tensor& tensor : *tensors)
        if (is_half(tensor.dtype)) tensor.dtype = DType::float32;
  }
  NodeView view() const {
    return {node_.op,       node_.params,      node_.name,    inputs_, outputs_,
            node_.is_train, node_.random_slot, node_.context, nullptr, nullptr};
  }
  const std::vector<Tensor>& inputs() const { return inputs_; }
  const std::vector<Tensor>& outputs() const { return outputs_; }

 private:
  const NodeView& node_;
  std::vector<Tensor> inputs_, outputs_;
};

class AsFloat final : public Kernel {
 public:
  explicit AsFloat(const NodeView& node) {
    const FloatNode wide(node);
    inner_ = choose(wide.view()).build(wide.view());
    const Names names = node.op.all_inputs(node.params);
    const Names& unread = node.op.shape_only;
    for (size_t i = 0; i < node.inputs.size(); ++i)
      add(inputs_, node.inputs[i], std::find(unread.begin(), unread.end(), names[i]) == unread.end());
    for (const Tensor& output : node.outputs) add(outputs_, output, true);
    cached_at_ = scratch_bytes;
    scratch_bytes += aligned(inner_->cached_bytes);
    scratch_at_ = scratch_bytes;
    scratch_bytes += inner_->scratch_bytes;
  }

  void run(const Args& args) override {
    auto* const scratch = static_cast<std::byte*>(args.scratch);
    void *inputs[most_arrays], *outputs[most_arrays];
    for (size_t i = 0; i < inputs_.size(); ++i) {
      const Part& part = inputs_[i];
      inputs[i] = part.at ? scratch + *part.at : args.inputs[i];
      if (part.at && args.inputs[i]) convert_array(inputs[i], DType::float32, args.inputs[i], part.dtype, part.count);
    }
    for (size_t i = 0; i < outputs_.size(); ++i)
      outputs[i] = outputs_[i].at ? scratch + *outputs_[i].at : args.outputs[i];
    Args inner = args;
    inner.inputs = inputs;
    inner.outputs = outputs;
    inner.cached = scratch + cached_at_;
    inner.scratch = scratch + scratch_at_;
    if (inner_->cached_bytes > 0) inner_->prepare(inner);
    inner_->run(inner);
    for (size_t i = 0; i < outputs_.size(); ++i)
      if (outputs_[i].at && args.outputs[i])
        convert_array(args.outputs[i], outputs_[i].dtype, outputs[i], DType::float32, outputs_[i].count);
  }

  static constexpr size_t most_arrays = 16;

 private:
  struct Part {
    DType dtype;
    int64_t count;
    std::optional<size_t> at;  // offset of its float32 form in scratch; none: it is not converted
  };
  void add(std::vector<Part>& parts, const Tensor& tensor, bool used) {
    Part part{tensor.dtype, tensor.shape.size(), std::nullopt};
    if (used && is_half(tensor.dtype)) {
      part.at = scratch_bytes;
      scratch_bytes += aligned(static_cast<size_t>(part.count) * sizeof(float));
    }
    parts.push_back(part);
  }

  std::unique_ptr<Kernel> inner_;
  std::vector<Part> inputs_, outputs_;
  size_t cached_at_ = 0, scratch_at_ = 0;
};

std::string refuse(const NodeView& node) {
  if (!is_half(node.outputs[0].dtype)) return "only for half precision";
  if (node.inputs.size() > AsFloat::most_arrays) return "too many arrays";
  for (const auto& tensors : {node.inputs, node.outputs})
    for (const Tensor& tensor : tensors)
      if (tensor.shape.size() == 0) return "an array is empty";
  return "";
}

// If channels are not last the plain kernels convert their inputs, plane by plane.
template <class P>
std::string refuse_pooling(const NodeView& node) {
  return is_channels_last(node.as<P>().layout) ? refuse(node) : "only where channels are last";
}

template <class P>
void add(ImplementationTable& table, std::string (*refuses)(const NodeView&) = refuse) {
  table.add<P>({"float32",
                refuses,
                [](const NodeView& node) { return std::make_unique<AsFloat>(node); },
                {},
                true,
                Tier::converted});
}

}  // namespace

std::unique_ptr<Kernel> build_as_float(const NodeView& node) { return std::make_unique<AsFloat>(node); }

void add_as_float(ImplementationTable& table) {
  add<BatchNorm>(table);
  add<BatchNormGrad>(table);
  add<BatchNormRelu>(table);
  add<BatchNormReluGrad>(table);
  add<Convolution>(table);
  add<ConvolutionFused>(table);
  add<ConvolutionGradData>(table);
  add<ConvolutionGradWeight>(table);
  add<Pooling>(table, refuse_pooling<Pooling>);
  add<PoolingGrad>(table, refuse_pooling<PoolingGrad>);
  add<FullyConnected>(table);
  add<FullyConnectedActivation>(table);
  add<FullyConnectedTransposed>(table);
  add<Dot>(table);
  add<DotLhsGrad>(table);
  add<DotRhsGrad>(table);
  add<BatchDot>(table);
}

}  // namespace symbind::cpu_backend
