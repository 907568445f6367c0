// The kinds of convolution nodes: P is Convolution, ConvolutionFused, ConvolutionGradData or ConvolutionGradWeight.
#pragma once

#include <type_traits>

#include "symbind/ops/conv_fused.h"
#include "symbind/passes/target.h"

namespace symbind::cpu_backend {

template <class P>
inline constexpr bool is_grad_data = std::is_same_v<P, ConvolutionGradData>;
template <class P>
inline constexpr bool is_grad_weight = std::is_same_v<P, ConvolutionGradWeight>;

template <class P>
ConvolutionSize size_of_node(const NodeView& node) {
  const Shape& data = is_grad_data<P> ? node.outputs[0].shape : node.inputs[is_grad_weight<P> ? 1 : 0].shape;
  const Shape& output = is_grad_data<P> || is_grad_weight<P> ? node.inputs[0].shape : node.outputs[0].shape;
  return size_of(node.as<P>(), data, output);
}

// A plain convolution as a ConvolutionFused with nothing fused; a fused one unchanged.
inline ConvolutionFused as_fused(const ConvolutionFused& params) { return params; }
inline ConvolutionFused as_fused(const Convolution& params) { return {params}; }

}  // namespace symbind::cpu_backend
