// Steps of gradient descent, with or without momentum and a float32 copy of the weight: what sgd, lars and nag share.
#pragma once

#include <span>
#include <vector>

#include "symbind/optim/optimizer.h"

namespace symbind {

// The state of SGD: nothing or a momentum; with a 16-bit weight and multi_precision a pair of that and the float32
// copy.
StateTree sgd_state(const NDArray& weight, bool momentum);
StateTree sgd_state_with_master(const NDArray& weight, bool momentum);

// One parameter with the numbers of its step. The state has one of the forms above.
struct SgdStep {
  NDArray weight, grad;
  const StateTree* state;
  double lr, wd;
};
struct SgdStepOptions {
  double momentum = 0;
  double rescale_grad = 1;
  double clip_gradient = -1;  // below 0: no clipping
};
// All of them, in as few passes as their types and devices allow.
void run_sgd(std::span<const SgdStep> steps, const SgdStepOptions& options);

}  // namespace symbind
