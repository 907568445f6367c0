// Gradient descent with Nesterov's momentum. Without momentum it is plain gradient descent.
#include "symbind/exec/invoke.h"
#include "symbind/ops/optimizer.h"
#include "symbind/optim/rules.h"
#include "symbind/optim/sgd_step.h"

namespace symbind {
namespace {

class Nag final : public MomentumRule<optim::Nag> {
 public:
  UpdateUnit update_unit() const override { return UpdateUnit::element; }
  bool is_one_operator() const override { return true; }
  Repeats repeats() const override { return Repeats::without_count; }
  void update(const Step& step, const StepOptions& options) override {
    if (own_.momentum == 0) return run_sgd({&step, 1}, 0, options);
    const NagMomUpdate params{.lr = step.lr,
                              .momentum = own_.momentum,
                              .wd = step.wd,
                              .rescale_grad = options.rescale_grad,
                              .clip_gradient = options.clip_argument()};
    const InvokeOptions into{.out = {step.weight}};
    if (step.state->is_tuple)
      invoke(mp_nag_mom_update, arrays_of(step, 2), {params}, into);
    else
      invoke(nag_mom_update, {step.weight, step.grad, step.state->array}, params, into);
  }
};

}  // namespace

UpdateRulePtr make_nag() { return std::make_unique<Nag>(); }

}  // namespace symbind
