// Reductions other than sums and means.
#pragma once

#include "symbind/passes/target.h"

namespace symbind::cuda_backend {

void add_reduce_folds(ImplementationTable& table);

std::string refuse_reduction(const NodeView& node);

}  // namespace symbind::cuda_backend
