// Steps of gradient descent, with or without momentum and a float32 copy of the weight: what sgd, lars and nag share.
#pragma once

#include <span>

#include "symbind/optim/update_rule.h"

namespace symbind {

// The state of SGD: nothing or a momentum; of a 16-bit weight with a float32 copy a pair of that and the copy.
StateTree sgd_state(const NDArray& weight, bool momentum);
StateTree sgd_state_with_copy(const NDArray& weight, bool momentum);

// All steps, in as few passes as their types and devices allow. Their states have one of the forms above.
void run_sgd(std::span<const UpdateRule::Step> steps, double momentum, const UpdateRule::StepOptions& options);

}  // namespace symbind
