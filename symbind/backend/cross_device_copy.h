#pragma once

#include <memory>

#include "symbind/passes/target.h"

namespace symbind {

// A copy between any two devices: every backend lists it.
std::unique_ptr<Kernel> build_cross_device_copy(const NodeView& node);

}  // namespace symbind
