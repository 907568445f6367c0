// Steps of gradient descent, with or without momentum and a float32 copy of the weight: what sgd, lars and nag share.
#pragma once

#include <span>

#include "symbind/optim/rules.h"

namespace symbind {

// The state of SGD: nothing or a momentum; of a 16-bit weight with a float32 copy a pair of that and the copy.
StateTree sgd_state(const NDArray& weight, bool momentum);
StateTree sgd_state_with_copy(const NDArray& weight, bool momentum);

// All steps, in as few passes as their types and devices allow. Their states have one of the forms above.
void run_sgd(std::span<const UpdateRule::Step> steps, double momentum, const UpdateRule::StepOptions& options);

// A rule whose states are these.
template <optim::Options Own>
class MomentumRule : public RuleWith<Own> {
 public:
  StateTree create_state(const std::string&, const NDArray& weight) const override {
    return sgd_state(weight, this->own_.momentum != 0);
  }
  bool writes_copy() const override { return true; }
  StateTree create_state_with_copy(const std::string&, const NDArray& weight) const override {
    return sgd_state_with_copy(weight, this->own_.momentum != 0);
  }
};

}  // namespace symbind
