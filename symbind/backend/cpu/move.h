// Elements moved from one place to another, whatever they mean: repeated, reversed, taken in steps.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "symbind/passes/target.h"

namespace symbind::cpu_backend {

// Element (i, j, …) of the result, which is dense, is element start + i·steps[0] + j·steps[1] + … of the input. There
// may be more axes than a Shape has.
struct Movement {
  std::vector<int64_t> extents, steps;
  int64_t start = 0;
};

// Output 0 from input 0.
std::unique_ptr<Kernel> build_movement(const NodeView& node, Movement movement);

}  // namespace symbind::cpu_backend
