// Kernels that many families share: output 0 is input 0, or is one number throughout.
#pragma once

#include <memory>

#include "symbind/passes/target.h"

namespace symbind::cpu_backend {

// Copies the bytes of input 0; does nothing if the output is the same memory.
std::unique_ptr<Kernel> build_copy(const NodeView& node);
std::unique_ptr<Kernel> build_fill(const NodeView& node, double value);

}  // namespace symbind::cpu_backend
