// The order of axes changed.
#pragma once

#include <memory>

#include "symbind/passes/target.h"

namespace symbind::cpu_backend {

// A kernel that turns input 0, seen in the shape `data`, so that axis axes[i] becomes axis i; no axes: all reversed.
std::unique_ptr<Kernel> build_transposition(const NodeView& node, const Shape& data, const Tuple& axes);

}  // namespace symbind::cpu_backend
