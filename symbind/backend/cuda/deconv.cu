#include "symbind/ops/deconv.h"

#include "symbind/backend/cuda/conv_finish.cuh"
#include "symbind/backend/cuda/device.h"
#include "symbind/backend/cuda/step.h"
#include "symbind/backend/deconv.h"
#include "symbind/backend/functions.h"
#include "symbind/passes/target.h"

namespace symbind::cuda_backend {
namespace {

std::string refuse(const NodeView& node) {
  const DType dtype = node.outputs[0].dtype;
  if (!is_floating(dtype)) return "wants floating numbers";
  if (node.outputs[0].shape.size() == 0) return "an empty array";
  for (const Tensor& input : node.inputs) {
    if (input.dtype != dtype) return "arrays of different types";
    if (input.shape.size() == 0) return "an empty array";
    if (input.layout != Layout::plain) return "wants plain arrays";
  }
  return "";
}

std::unique_ptr<Kernel> build_forward(const NodeView& node) {
  const Shape& out = node.outputs[0].shape;
  const ChannelShape shape{out[0], out[1], out.size(2, out.rank())};
  return visit_floating(node.outputs[0].dtype, [&]<class T>(std::type_identity<T>) {
    return build_deconvolution(node, [shape](const Args& args) {
      T* const result = args.out<T>();
      queue_channel_map(stream_of(args), shape, aligned_for_packs(result),
                        FinishOutput<T, functions::Identity>{result, args.in<T>(2), nullptr, {}});
    });
  });
}

}  // namespace

void add_deconv(ImplementationTable& table) {
  table.add<Deconvolution>({"conv", refuse, build_forward, {}, true});
  table.add<DeconvolutionGradData>({"conv", refuse, build_deconvolution_grad_data, {}, true});
  table.add<DeconvolutionGradWeight>({"conv", refuse, build_deconvolution_grad_weight, {}, true});
}

}  // namespace symbind::cuda_backend
