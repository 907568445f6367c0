// Half-precision operators as float32 ones, at lower priority than implementations that compute in half precision
// directly.
#include "symbind/backend/cpu/as_float.h"

#include "symbind/backend/as_float.h"
#include "symbind/backend/cpu/convert_array.h"
#include "symbind/ops/batch_norm.h"
#include "symbind/ops/conv.h"
#include "symbind/ops/conv_fused.h"
#include "symbind/ops/dot.h"
#include "symbind/ops/fully_connected.h"
#include "symbind/ops/pool.h"
#include "symbind/passes/target.h"

namespace symbind::cpu_backend {
namespace {

std::string refuse(const NodeView& node) {
  if (!is_half(node.outputs[0].dtype)) return "only for half precision";
  if (node.inputs.size() > most_arrays_as_float) return "too many arrays";
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
  table.add<P>(
      {"float32", refuses, [](const NodeView& node) { return build_as_float(node); }, {}, true, Tier::converted});
}

}  // namespace

std::unique_ptr<Kernel> build_as_float(const NodeView& node) {
  return symbind::build_as_float(node, [](const Args&, void* dst, DType to, const void* src, DType from,
                                          int64_t count) { convert_array(dst, to, src, from, count); });
}

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
