// Reasons to refuse a node that many implementations share.
#pragma once

#include <string>

#include "symbind/passes/target.h"

namespace symbind::cuda_backend {

inline std::string refuse_layouts(const NodeView& node) {
  for (const Tensor& tensor : node.inputs)
    if (tensor.layout != Layout::plain) return "needs plain arrays";
  return "";
}

// For kernels that are compiled for one type: all arrays are of it, and it is a floating one.
inline std::string refuse_mixed_floating(const NodeView& node) {
  const DType dtype = node.outputs[0].dtype;
  if (!is_floating(dtype)) return "needs floating numbers";
  for (const Tensor& tensor : node.inputs)
    if (tensor.dtype != dtype) return "arrays of different types";
  return refuse_layouts(node);
}

}  // namespace symbind::cuda_backend
