// Steps in the unit of the weight: the root mean square of the last steps over that of the last gradients. The learning
// rate is not used.
#include "symbind/exec/invoke.h"
#include "symbind/ops/adaptive_optimizer.h"
#include "symbind/optim/rules.h"

namespace symbind {
namespace {

class Adadelta final : public OneOperatorRule<optim::AdaDelta> {
 public:
  UpdateUnit update_unit() const override { return UpdateUnit::element; }
  Repeats repeats() const override { return Repeats::without_count; }
  StateTree create_state(const std::string&, const NDArray& weight) const override { return blank_states(weight, 2); }
  Counting counting() const override { return Counting::without_rate; }
  void update(const Step& step, const StepOptions& options) override {
    invoke(adadelta_update, arrays_of(step, 2),
           {.rho = own_.rho,
            .epsilon = own_.epsilon,
            .wd = step.wd,
            .rescale_grad = options.rescale_grad,
            .clip_gradient = options.clip_gradient.value_or(-1)},
           {.out = {step.weight}});
  }
};

}  // namespace

UpdateRulePtr make_adadelta() { return std::make_unique<Adadelta>(); }

}  // namespace symbind
