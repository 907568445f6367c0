// Steps divided by the root of the running mean square; the centered form divides by the standard deviation and has
// momentum.
#include "symbind/exec/invoke.h"
#include "symbind/ops/adaptive_optimizer.h"
#include "symbind/optim/rules.h"

namespace symbind {
namespace {

class Rmsprop final : public OneOperatorRule<optim::RmsProp> {
 public:
  UpdateUnit update_unit() const override { return UpdateUnit::element; }
  Repeats repeats() const override { return Repeats::without_count; }
  StateTree create_state(const std::string&, const NDArray& weight) const override {
    return blank_states(weight, own_.centered ? 3 : 1);
  }

  void update(const Step& step, const StepOptions& options) override {
    const double clip_weights = own_.clip_weights && *own_.clip_weights != 0 ? *own_.clip_weights : -1;
    const InvokeOptions into{.out = {step.weight}};
    if (own_.centered)
      invoke(rmspropalex_update, arrays_of(step, 3),
             {.lr = step.lr,
              .gamma1 = own_.gamma1,
              .gamma2 = own_.gamma2,
              .epsilon = own_.epsilon,
              .wd = step.wd,
              .rescale_grad = options.rescale_grad,
              .clip_gradient = options.clip_argument(),
              .clip_weights = clip_weights},
             into);
    else
      invoke(rmsprop_update, arrays_of(step, 1),
             {.lr = step.lr,
              .gamma1 = own_.gamma1,
              .epsilon = own_.epsilon,
              .wd = step.wd,
              .rescale_grad = options.rescale_grad,
              .clip_gradient = options.clip_argument(),
              .clip_weights = clip_weights},
             into);
  }
};

}  // namespace

UpdateRulePtr make_rmsprop() { return std::make_unique<Rmsprop>(); }

}  // namespace symbind
