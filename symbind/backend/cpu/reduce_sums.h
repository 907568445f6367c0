// Sums and means over any set of axes.
#pragma once

#include <memory>
#include <vector>

#include "symbind/passes/target.h"

namespace symbind::cpu_backend {

enum class Reduction { sum, mean, sum_of_numbers };

// A kernel that reduces input 0 over the axes marked in `reduced` into output 0, whose elements are in the order of the
// remaining axes.
std::unique_ptr<Kernel> build_reduction(const NodeView& node, const std::vector<bool>& reduced, Reduction reduction);

}  // namespace symbind::cpu_backend
