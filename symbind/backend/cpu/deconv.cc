#include "symbind/ops/deconv.h"

#include <algorithm>
#include <iterator>

#include "symbind/backend/cpu/fill.h"
#include "symbind/backend/cpu/half.h"
#include "symbind/backend/cpu/loops.h"
#include "symbind/backend/cpu/plain.h"
#include "symbind/backend/deconv.h"
#include "symbind/passes/target.h"

namespace symbind::cpu_backend {
namespace {

// y[i] += bias.
template <class T>
void add_number(T* y, int64_t count, compute_type<T> bias) {
  if constexpr (std::is_same_v<T, float16>) {
    float wide[256];
    for (int64_t i = 0; i < count; i += std::size(wide)) {
      const int64_t some = std::min<int64_t>(std::size(wide), count - i);
      widen(y + i, wide, some);
      for (int64_t j = 0; j < some; ++j) wide[j] += bias;
      narrow(wide, y + i, some);
    }
  } else {
    for (int64_t i = 0; i < count; ++i) y[i] = narrowed<T>(widened(y[i]) + bias);
  }
}

template <class T>
void add_bias(T* y, const T* bias, const Shape& shape) {
  const int64_t channels = shape[1], space = shape.size(2, shape.rank());
  const auto add_to_planes = [=](int64_t begin, int64_t end) {
    for (int64_t plane = begin; plane < end; ++plane)
      add_number(y + plane * space, space, widened(bias[plane % channels]));
  };
  for_elements<InstructionSet::avx2>(shape[0] * channels, add_to_planes,
                                     element_grain / std::max<int64_t>(1, space) + 1);
}

std::unique_ptr<Kernel> build_forward(const NodeView& node) {
  const Tensor& output = node.outputs[0];
  return visit_floating(output.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    return build_deconvolution(
        node, [shape = output.shape](const Args& args) { add_bias(args.out<T>(), args.in<T>(2), shape); });
  });
}

// If an input has no elements, the output is zero.
template <auto build>
std::unique_ptr<Kernel> build_unless_empty(const NodeView& node) {
  const bool is_empty = node.inputs[0].shape.size() == 0 || node.outputs[0].shape.size() == 0;
  return is_empty ? build_fill(node, 0) : build(node);
}

}  // namespace

void add_deconv(ImplementationTable& table) {
  add_plain<Deconvolution>(table, build_unless_empty<build_forward>);
  add_plain<DeconvolutionGradData>(table, build_unless_empty<build_deconvolution_grad_data>);
  add_plain<DeconvolutionGradWeight>(table, build_unless_empty<build_deconvolution_grad_weight>);
}

}  // namespace symbind::cpu_backend
