#include "symbind/backend/as_float.h"

#include <algorithm>
#include <optional>
#include <vector>

namespace symbind {
namespace {

constexpr size_t alignment = 64;

size_t aligned(size_t bytes) { return (bytes + alignment - 1) / alignment * alignment; }

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

 private:
  const NodeView& node_;
  std::vector<Tensor> inputs_, outputs_;
};

class AsFloat final : public Kernel {
 public:
  AsFloat(const NodeView& node, ConvertArray convert) : convert_(convert) {
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
    capturable = inner_->capturable;
  }

  void run(const Args& args) override {
    auto* const scratch = static_cast<std::byte*>(args.scratch);
    void *inputs[most_arrays_as_float], *outputs[most_arrays_as_float];
    for (size_t i = 0; i < inputs_.size(); ++i) {
      const Part& part = inputs_[i];
      inputs[i] = part.at ? scratch + *part.at : args.inputs[i];
      if (part.at && args.inputs[i]) convert_(args, inputs[i], DType::float32, args.inputs[i], part.dtype, part.count);
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
        convert_(args, args.outputs[i], outputs_[i].dtype, outputs[i], DType::float32, outputs_[i].count);
  }

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

  const ConvertArray convert_;
  std::unique_ptr<Kernel> inner_;
  std::vector<Part> inputs_, outputs_;
  size_t cached_at_ = 0, scratch_at_ = 0;
};

}  // namespace

std::unique_ptr<Kernel> build_as_float(const NodeView& node, ConvertArray convert) {
  return std::make_unique<AsFloat>(node, convert);
}

}  // namespace symbind
