// What the kernels of this build were compiled for, and whether a GPU runs them (backend/gpu_architectures.h).
#pragma once

#include <vector>

#include "symbind/core/context.h"

namespace symbind::cuda_backend {

// In ascending order.
const std::vector<int>& built_architectures();

int compute_capability(int gpu);

// Fails if the GPU runs none of the kernels. Warns once in a process of a GPU that lacks kernels of its own.
void check_architecture(Context context);

}  // namespace symbind::cuda_backend
