// The parts of the gather family: slices (gather.cu) and single elements (gather_elements.cu).
#pragma once

#include "symbind/passes/target.h"

namespace symbind::cuda_backend {

// pick, batch_take, one_hot, fill_element_0index, where.
void add_gathered_elements(ImplementationTable& table);

}  // namespace symbind::cuda_backend
