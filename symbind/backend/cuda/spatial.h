// The parts of the spatial family: sampling (spatial.cu) and Correlation (correlation.cu).
#pragma once

#include "symbind/passes/target.h"

namespace symbind::cuda_backend {

void add_correlation(ImplementationTable& table);

}  // namespace symbind::cuda_backend
