// The axes that a reduction runs along, for every backend.
#pragma once

#include <vector>

#include "symbind/core/axis_view.h"

namespace symbind {

// The reductions of the marked axes, one after the other, the innermost first: axes of extent 1 are dropped, and
// adjacent axes of the same kind are merged.
std::vector<AxisView> reduced_one_by_one(const Shape& shape, const std::vector<bool>& reduced);

// The axes of `data` along which `like`, aligned at the last axis, was broadcast.
std::vector<bool> broadcast_axes(const Shape& data, const Shape& like);

}  // namespace symbind
