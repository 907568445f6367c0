#include "symbind/backend/cuda/empty.h"

#include <algorithm>

#include "symbind/backend/cuda/step.h"
#include "symbind/ops/conv.h"
#include "symbind/ops/custom.h"
#include "symbind/ops/deconv.h"
#include "symbind/ops/deformable_conv.h"

namespace symbind::cuda_backend {
namespace {

bool is_empty(const Tensor& tensor) { return tensor.shape.size() == 0; }

// Operators of the user are called in any case.
std::string refuse_nothing(const NodeView& node) {
  if (!std::all_of(node.outputs.begin(), node.outputs.end(), is_empty)) return "an output is not empty";
  const std::vector<bool> updated = node.op.updated_inputs(node.params, node.inputs.size());
  if (std::find(updated.begin(), updated.end(), true) != updated.end()) return "an input is updated";
  return &node.op == &op_of<Custom>() || &node.op == &op_of<CustomGrad>() ? "calls the user" : "";
}

std::string refuse_zeros(const NodeView& node) { return is_empty(node.inputs[0]) ? "" : "out_grad is not empty"; }

std::unique_ptr<Kernel> build_zeros(const NodeView& node) {
  std::vector<size_t> bytes;
  for (const Tensor& output : node.outputs) bytes.push_back(output.bytes());
  return make_step(node, [bytes, &device = CudaDevice::of(node.context), where = node.where()](const Args& args) {
    for (size_t i = 0; i < bytes.size(); ++i)
      if (args.outputs[i] && bytes[i] > 0)
        device.check(cudaMemsetAsync(args.outputs[i], 0, bytes[i], stream_of(args)), where);
  });
}

template <class P>
void add_zeros(ImplementationTable& table) {
  table.add<P>({"zeros", refuse_zeros, build_zeros});
}

}  // namespace

Implementation nothing_implementation() {
  Implementation nothing;
  nothing.name = "nothing";
  nothing.refuse = refuse_nothing;
  nothing.build = [](const NodeView& node) { return make_step(node, [](const Args&) {}); };
  nothing.tier = Tier::host;  // after the kernels of an operator
  return nothing;
}

void add_empty(ImplementationTable& table) {
  add_zeros<ConvolutionGradWeight>(table);
  add_zeros<DeconvolutionGradWeight>(table);
  add_zeros<DeformableConvolutionGradWeight>(table);
  add_zeros<ModulatedDeformableConvolutionGradWeight>(table);
}

}  // namespace symbind::cuda_backend
