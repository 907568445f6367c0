// Half-precision operators as float32 ones, at lower priority than implementations that compute in half precision
// directly.
#include "symbind/backend/cpu/as_float.h"

#include <limits>

#include "symbind/backend/as_float.h"
#include "symbind/backend/cpu/convert_array.h"
#include "symbind/backend/cpu/loops.h"
#include "symbind/backend/pooling.h"
#include "symbind/backend/visit_types.h"
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

void convert_values(const Args&, void* dst, DType to, const void* src, DType from, int64_t count) {
  convert_array(dst, to, src, from, count);
}

// Maxima are never less than the lowest number of their type. The lowest float32 is -infinity in half precision.
void convert_maxima(const Args&, void* dst, DType to, const void* src, DType from, int64_t count) {
  convert_array(dst, to, src, from, count);
  if (!is_half(to)) return;
  visit_types<float16, bfloat16>(to, [&]<class T>(std::type_identity<T>) {
    for_elements(count, [y = static_cast<T*>(dst)](int64_t begin, int64_t end) {
      constexpr T least = lowest<T>(), minus_infinity = -std::numeric_limits<float>::infinity();
      for (int64_t i = begin; i < end; ++i) y[i].bits = y[i].bits == minus_infinity.bits ? least.bits : y[i].bits;
    });
  });
}

std::unique_ptr<Kernel> build_pooling(const NodeView& node) {
  const bool is_max = kind_of(node.as<Pooling>()) == PoolKind::max;
  return symbind::build_as_float(node, is_max ? convert_maxima : convert_values);
}

// If channels are not last the plain kernels convert their inputs, plane by plane.
template <class P>
std::string refuse_pooling(const NodeView& node) {
  return is_channels_last(node.as<P>().layout) ? refuse(node) : "only where channels are last";
}

template <class P>
void add(ImplementationTable& table, std::string (*refuses)(const NodeView&) = refuse,
         std::unique_ptr<Kernel> (*build)(const NodeView&) = build_as_float) {
  table.add<P>({"float32", refuses, build, {}, true, Tier::converted});
}

}  // namespace

std::unique_ptr<Kernel> build_as_float(const NodeView& node) { return symbind::build_as_float(node, convert_values); }

void add_as_float(ImplementationTable& table) {
  add<BatchNorm>(table);
  add<BatchNormGrad>(table);
  add<BatchNormRelu>(table);
  add<BatchNormReluGrad>(table);
  add<Convolution>(table);
  add<ConvolutionFused>(table);
  add<ConvolutionGradData>(table);
  add<ConvolutionGradWeight>(table);
  add<Pooling>(table, refuse_pooling<Pooling>, build_pooling);
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
