// The last implementation of every operator on a GPU: the CPU's. It makes every operator right on a GPU from its first
// day, at the price of two copies and a wait.
#pragma once

#include "symbind/passes/target.h"

namespace symbind::cuda_backend {

Implementation host_implementation();

}  // namespace symbind::cuda_backend
