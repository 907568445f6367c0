// ftrl (follow the regularized leader), which keeps unimportant weights at zero, and ftml (follow the moving leader).
#include "symbind/exec/invoke.h"
#include "symbind/ops/adaptive_optimizer.h"
#include "symbind/optim/rules.h"

namespace symbind {
namespace {

class Ftrl final : public OneOperatorRule<optim::Ftrl> {
 public:
  UpdateUnit update_unit() const override { return UpdateUnit::element; }
  Repeats repeats() const override { return Repeats::without_count; }
  StateTree create_state(const std::string&, const NDArray& weight) const override { return blank_states(weight, 2); }
  void update(const Step& step, const StepOptions& options) override {
    invoke(ftrl_update, arrays_of(step, 2),
           {.lr = step.lr,
            .lamda1 = own_.lamda1,
            .beta = own_.beta,
            .wd = step.wd,
            .rescale_grad = options.rescale_grad,
            .clip_gradient = options.clip_argument()},
           {.out = {step.weight}});
  }
};

class Ftml final : public OneOperatorRule<optim::Ftml> {
 public:
  UpdateUnit update_unit() const override { return UpdateUnit::element; }
  StateTree create_state(const std::string&, const NDArray& weight) const override { return blank_states(weight, 3); }
  void update(const Step& step, const StepOptions& options) override {
    invoke(ftml_update, arrays_of(step, 3),
           {.lr = step.lr,
            .beta1 = own_.beta1,
            .beta2 = own_.beta2,
            .epsilon = own_.epsilon,
            .t = step.count,
            .wd = step.wd,
            .rescale_grad = options.rescale_grad,
            .clip_grad = options.clip_argument()},
           {.out = {step.weight}});
  }
};

}  // namespace

UpdateRulePtr make_ftrl() { return std::make_unique<Ftrl>(); }
UpdateRulePtr make_ftml() { return std::make_unique<Ftml>(); }

}  // namespace symbind
