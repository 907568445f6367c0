// Random choices among classes, and random orders.
#pragma once

#include "symbind/passes/target.h"

namespace symbind::cuda_backend {

void add_random_choices(ImplementationTable& table);

}  // namespace symbind::cuda_backend
