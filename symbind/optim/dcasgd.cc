// Gradient descent with compensation of the delay of asynchronous gradients. The state is a pair: the momentum, if
// there is any, and the weight before the last step.
#include "symbind/exec/invoke.h"
#include "symbind/ops/optimizer.h"
#include "symbind/optim/rules.h"
#include "symbind/optim/sgd_step.h"

namespace symbind {
namespace {

class Dcasgd final : public OneOperatorRule<optim::Dcasgd> {
 public:
  UpdateUnit update_unit() const override { return UpdateUnit::element; }
  StateTree create_state(const std::string&, const NDArray& weight) const override {
    return StateTree::of({sgd_state(weight, own_.momentum != 0), weight.copy()});
  }

  void update(const Step& step, const StepOptions& options) override {
    std::vector<NDArray> arrays = arrays_of(step, 2);
    if (NDArray& last_step = arrays[2]; !last_step)
      last_step = zeros(step.weight.shape(), step.weight.context(), step.weight.dtype());
    invoke(dcasgd_update, arrays,
           {.lr = step.lr,
            .momentum = own_.momentum,
            .lamda = own_.lamda,
            .wd = step.wd,
            .rescale_grad = options.rescale_grad,
            .clip_gradient = options.clip_gradient.value_or(-1)},
           {.out = {step.weight}});
  }
};

}  // namespace

UpdateRulePtr make_dcasgd() { return std::make_unique<Dcasgd>(); }

}  // namespace symbind
