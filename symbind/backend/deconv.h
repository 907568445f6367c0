// A transposed convolution is the gradient of a convolution with its arrays in other roles, so the convolution's
// kernels are used: the first on the node's device that accepts it, e.g. oneDNN's or cuDNN's.
#pragma once

#include <functional>
#include <memory>

#include "symbind/passes/target.h"

namespace symbind {

// For arrays that have elements. add_bias adds input 2 to output 0, where the node has a bias.
std::unique_ptr<Kernel> build_deconvolution(const NodeView& node, std::function<void(const Args&)> add_bias);
std::unique_ptr<Kernel> build_deconvolution_grad_data(const NodeView& node);
std::unique_ptr<Kernel> build_deconvolution_grad_weight(const NodeView& node);

}  // namespace symbind
