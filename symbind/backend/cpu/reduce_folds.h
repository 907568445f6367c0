// Reductions other than sums and means over any set of axes.
#pragma once

#include <memory>
#include <vector>

#include "symbind/passes/target.h"

namespace symbind::cpu_backend {

enum class Fold { max, min, product, product_of_numbers, norm1, norm2 };

// A kernel that folds input 0 over the axes marked in `reduced` into output 0, whose elements are in the order of the
// remaining axes.
std::unique_ptr<Kernel> build_fold(const NodeView& node, const std::vector<bool>& reduced, Fold fold);

}  // namespace symbind::cpu_backend
