// A kernel of this backend: a function that queues work on the stream, with the operator's name for errors around it.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include <cuda_runtime_api.h>

#include "symbind/backend/cuda/device.h"
#include "symbind/passes/target.h"

namespace symbind::cuda_backend {

inline cudaStream_t stream_of(const Args& args) { return static_cast<cudaStream_t>(args.stream); }

// What every step does around the work that it queues. Not a template, as each kernel has a FunctionStep of its own.
class Step : public Kernel {
 public:
  Step(const NodeView& node, KernelTraits traits);
  void run(const Args& args) final;

 protected:
  virtual void queue(const Args& args) = 0;

 private:
  CudaDevice& device_;
  std::string where_;
};

template <class Function>
class FunctionStep final : public Step {
 public:
  FunctionStep(const NodeView& node, Function function, KernelTraits traits)
      : Step(node, std::move(traits)), function_(std::move(function)) {}

 protected:
  void queue(const Args& args) override { function_(args); }

 private:
  Function function_;
};

template <class Function>
std::unique_ptr<Kernel> make_step(const NodeView& node, Function function, KernelTraits traits = {}) {
  return std::make_unique<FunctionStep<Function>>(node, std::move(function), std::move(traits));
}

// Output 0 may be the memory of any of the first `inputs` inputs.
KernelTraits writes_over_inputs(int inputs);

// Each node's elements are in one order: elementwise kernels run on any layout that all arrays share.
inline bool one_layout(const NodeView& node) {
  for (const auto& tensor : node.inputs)
    if (tensor.layout != node.outputs[0].layout) return false;
  return true;
}

}  // namespace symbind::cuda_backend
