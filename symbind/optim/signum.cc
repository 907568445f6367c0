// Steps along the sign of the running mean of the gradient (signum), or of the gradient itself (signsgd).
#include "symbind/exec/invoke.h"
#include "symbind/ops/optimizer.h"
#include "symbind/optim/rules.h"
#include "symbind/optim/sgd_step.h"

namespace symbind {
namespace {

class Signum final : public OneOperatorRule<optim::Signum> {
 public:
  UpdateUnit update_unit() const override { return UpdateUnit::element; }
  Repeats repeats() const override { return Repeats::without_count; }
  explicit Signum(double default_momentum) { own_.momentum = default_momentum; }
  StateTree create_state(const std::string&, const NDArray& weight) const override {
    return sgd_state(weight, own_.momentum != 0);
  }

  void update(const Step& step, const StepOptions& options) override {
    const InvokeOptions into{.out = {step.weight}};
    if (step.state->array)
      invoke(signum_update, {step.weight, step.grad, step.state->array},
             {.lr = step.lr,
              .momentum = own_.momentum,
              .wd = step.wd,
              .rescale_grad = options.rescale_grad,
              .clip_gradient = options.clip_argument(),
              .wd_lh = own_.wd_lh},
             into);
    else
      invoke(signsgd_update, {step.weight, step.grad},
             {.lr = step.lr,
              .wd = step.wd,
              .rescale_grad = options.rescale_grad,
              .clip_gradient = options.clip_argument()},
             into);
  }
};

}  // namespace

UpdateRulePtr make_signum() { return std::make_unique<Signum>(optim::Signum{}.momentum); }
UpdateRulePtr make_signsgd() { return std::make_unique<Signum>(optim::SignSgd{}.momentum); }

}  // namespace symbind
