// Sums and means over any set of axes.
#pragma once

#include <memory>
#include <vector>

#include "symbind/passes/target.h"

namespace symbind::cpu_backend {

// An array (outer, length, inner) that loses its middle axis.
struct ReducedAxis {
  int64_t outer, length, inner;
};
// What reducing the marked axes comes to, the innermost first: axes of extent 1 are dropped, neighbours of one kind
// merged.
std::vector<ReducedAxis> reduced_one_by_one(const Shape& shape, const std::vector<bool>& reduced);

enum class Reduction { sum, mean };

// A kernel that reduces input 0 over the axes marked in `reduced` into output 0, whose elements are in the order of
// the axes that are left.
std::unique_ptr<Kernel> build_reduction(const NodeView& node, const std::vector<bool>& reduced, Reduction reduction);

}  // namespace symbind::cpu_backend
