// Stochastic gradient Langevin dynamics: half a step of gradient descent, and noise of variance lr.
#include "symbind/exec/invoke.h"
#include "symbind/ops/optimizer.h"
#include "symbind/optim/rules.h"

namespace symbind {
namespace {

class Sgld final : public RuleWith<optim::Sgld> {
 public:
  bool draws_random() const override { return true; }
  StateTree create_state(const std::string&, const NDArray&) const override { return {}; }

  void update(const Step& step, const StepOptions& options) override {
    invoke(sgld_update, {step.weight, step.grad},
           {.lr = step.lr,
            .wd = step.wd,
            .rescale_grad = options.rescale_grad,
            .clip_gradient = options.clip_gradient.value_or(-1)},
           {.out = {step.weight}});
  }
};

}  // namespace

UpdateRulePtr make_sgld() { return std::make_unique<Sgld>(); }

}  // namespace symbind
