// The GPUs that kernels were compiled for, and what that means on the GPU of a machine. An architecture and a compute
// capability are numbers as in CMAKE_CUDA_ARCHITECTURES: 90 is compute capability 9.0. Lists are not empty.
#pragma once

#include <span>
#include <string>

namespace symbind {

// "8.0, 9.0"
std::string capability_text(std::span<const int> architectures);

// Why a GPU runs none of the kernels; empty: it does.
std::string architecture_problem(std::span<const int> built_for, int capability);

// What a GPU from compute capability 9.0 on does slower than if kernels had been compiled for it, and how to build
// them; empty: nothing.
std::string architecture_warning(std::span<const int> built_for, int capability);

}  // namespace symbind
