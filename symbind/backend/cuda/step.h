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

template <class Function>
std::unique_ptr<Kernel> make_step(const NodeView& node, Function function, KernelTraits traits = {}) {
  return make_kernel(
      [&device = CudaDevice::of(node.context), where = node.where(), function = std::move(function)](const Args& args) {
        const Queueing queueing(device);
        device.note(where);
        function(args);
        device.check_queued(where);
      },
      std::move(traits));
}

// Each node's elements are in one order: elementwise kernels run on any layout that all arrays share.
inline bool one_layout(const NodeView& node) {
  for (const auto& tensor : node.inputs)
    if (tensor.layout != node.outputs[0].layout) return false;
  return true;
}

}  // namespace symbind::cuda_backend
