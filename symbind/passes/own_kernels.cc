#include "symbind/passes/own_kernels.h"

#include <map>
#include <mutex>

namespace symbind {
namespace {

struct Registry {
  std::mutex mutex;
  std::map<std::pair<const OpDef*, DeviceType>, detail::OwnKernel> kernels;

  static Registry& get() {
    static Registry& registry = *new Registry;  // NOLINT: never destroyed, as the targets that point into it
    return registry;
  }
};

std::vector<KernelArray> described(std::span<const Tensor> tensors, const OpDef& op) {
  std::vector<KernelArray> arrays;
  for (const Tensor& tensor : tensors) arrays.push_back({nullptr, tensor.shape, tensor.dtype, op.name});
  return arrays;
}

}  // namespace

void detail::register_kernel(const OpDef& op, DeviceType device, OwnKernel kernel) {
  require(device != DeviceType::cpu_pinned, "[", op.name, "] kernels are for DeviceType::cpu or DeviceType::gpu");
  Registry& registry = Registry::get();
  const std::lock_guard lock(registry.mutex);
  const bool is_new = registry.kernels.try_emplace({&op, device}, std::move(kernel)).second;
  require(is_new, "[", op.name, "] has a kernel for ", device == DeviceType::gpu ? "GPUs" : "CPUs", " already");
}

const detail::OwnKernel* own_kernel(const OpDef& op, DeviceType device) {
  Registry& registry = Registry::get();
  const std::lock_guard lock(registry.mutex);
  const auto found = registry.kernels.find({&op, device});
  return found == registry.kernels.end() ? nullptr : &found->second;
}

std::function<void(const Args& args)> work_of(const detail::OwnKernel& kernel, const NodeView& node) {
  return [&kernel, params = node.op.copy_params(node.params), inputs = described(node.inputs, node.op),
          outputs = described(node.outputs, node.op), is_train = node.is_train,
          context = node.context](const Args& args) mutable {
    for (size_t i = 0; i < inputs.size(); ++i) inputs[i].data = args.inputs[i];
    for (size_t i = 0; i < outputs.size(); ++i) outputs[i].data = args.outputs[i];
    kernel.run(params.get(), {inputs, outputs, is_train, context, args.stream, args.scratch});
  };
}

KernelTraits traits_of(const detail::OwnKernel& kernel, const NodeView& node) {
  KernelTraits traits;
  traits.in_place = kernel.in_place;
  traits.capturable = kernel.capturable;
  if (kernel.scratch_bytes) {
    const std::vector<KernelArray> inputs = described(node.inputs, node.op), outputs = described(node.outputs, node.op);
    traits.scratch_bytes = kernel.scratch_bytes(node.params, {inputs, outputs, node.is_train, node.context});
  }
  return traits;
}

}  // namespace symbind
