// Copies on the device.
#pragma once

#include <memory>

#include "symbind/passes/target.h"

namespace symbind::cuda_backend {

// Output 0 gets the bytes of input 0. May be in place.
std::unique_ptr<Kernel> build_copy(const NodeView& node);

}  // namespace symbind::cuda_backend
