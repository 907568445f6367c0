// The last implementation of every operator on a GPU: the CPU's. It makes every operator available on a GPU, at the
// cost of copies to and from the host and a synchronization.
#pragma once

#include "symbind/passes/target.h"

namespace symbind::cuda_backend {

Implementation host_implementation();

}  // namespace symbind::cuda_backend
