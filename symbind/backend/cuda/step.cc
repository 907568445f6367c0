#include "symbind/backend/cuda/step.h"

#include <utility>

namespace symbind::cuda_backend {

Step::Step(const NodeView& node, KernelTraits traits) : device_(CudaDevice::of(node.context)), where_(node.where()) {
  in_place = std::move(traits.in_place);
  scratch_bytes = traits.scratch_bytes;
  capturable = traits.capturable;
}

void Step::run(const Args& args) {
  const Queueing queueing(device_);
  device_.note(where_);
  queue(args);
  device_.check_queued(where_);
}

KernelTraits writes_over_inputs(int inputs) {
  KernelTraits traits;
  for (int input = 0; input < inputs; ++input) traits.in_place.emplace_back(input, 0);
  return traits;
}

}  // namespace symbind::cuda_backend
