// Sums and means over any set of axes.
#pragma once

#include <memory>
#include <vector>

#include "symbind/core/axis_view.h"
#include "symbind/passes/target.h"

namespace symbind::cpu_backend {

// What reducing the marked axes comes to, one after the other, the innermost first: axes of extent 1 are dropped,
// neighbours of one kind merged.
std::vector<AxisView> reduced_one_by_one(const Shape& shape, const std::vector<bool>& reduced);

enum class Reduction { sum, mean };

// A kernel that reduces input 0 over the axes marked in `reduced` into output 0, whose elements are in the order of
// the axes that are left.
std::unique_ptr<Kernel> build_reduction(const NodeView& node, const std::vector<bool>& reduced, Reduction reduction);

}  // namespace symbind::cpu_backend
