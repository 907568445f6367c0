// One thread: the scale is adapted between the kernels that check gradients and those that use it.
#include "symbind/backend/loss_scale.h"

#include "symbind/backend/cuda/step.h"
#include "symbind/passes/target.h"

namespace symbind::cuda_backend {
namespace {

__global__ void adapt(const float* finite, double* state, float* scale, float* inverse) {
  adapt_in_memory(finite, state, scale, inverse);
}

std::unique_ptr<Kernel> build(const NodeView& node) {
  return make_step(node, [](const Args& args) {
    adapt<<<1, 1, 0, stream_of(args)>>>(args.in<float>(0), args.state<double>(1), args.out<float>(0),
                                        args.out<float>(1));
  });
}

}  // namespace

void add_loss_scale(ImplementationTable& table) {
  table.add<AdaptLossScale>({"cuda", [](const NodeView&) { return std::string(); }, build});
}

}  // namespace symbind::cuda_backend
