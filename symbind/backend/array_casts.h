// Operators that convert input i to the type of output i.
#pragma once

#include <cstdint>
#include <vector>

#include "symbind/passes/target.h"

namespace symbind {

struct ArrayCast {
  DType from, to;
  int64_t count;  // of elements
};

inline std::vector<ArrayCast> array_casts(const NodeView& node) {
  std::vector<ArrayCast> casts;
  for (size_t i = 0; i < node.outputs.size(); ++i)
    casts.push_back({node.inputs[i].dtype, node.outputs[i].dtype, node.outputs[i].shape.size()});
  return casts;
}

}  // namespace symbind
