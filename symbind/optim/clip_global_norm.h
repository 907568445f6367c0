// The joint norm of many arrays, and a bound for it. Inside a module, the optimizer's argument clip_global_norm bounds
// the norm of a step's gradients; these functions are for custom training loops.
#pragma once

#include <vector>

#include "symbind/core/ndarray.h"

namespace SYMBIND_API symbind {

// The Euclidean norm of all elements of all arrays, which may be on different devices.
double global_norm(const std::vector<NDArray>& arrays);

// The factor that scales arrays of this norm to at most max_norm: max_norm / (norm + 1e-8), or 1.
double clip_factor(double norm, double max_norm);

// Scales the arrays in place where their joint norm exceeds max_norm, and returns the norm they had. A norm that is not
// finite leaves them as they are, with a warning if check_isfinite.
double clip_global_norm(const std::vector<NDArray>& arrays, double max_norm, bool check_isfinite = true);

}  // namespace symbind
