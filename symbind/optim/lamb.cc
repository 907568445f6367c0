// A step in Adam's direction, scaled by the norm of the weight: two phases, with the norms computed in between.
#include "symbind/core/error.h"
#include "symbind/exec/invoke.h"
#include "symbind/ops/adaptive_optimizer.h"
#include "symbind/ops/elementwise.h"
#include "symbind/ops/multi_optimizer.h"
#include "symbind/optim/rules.h"

namespace symbind {
namespace {

class Lamb final : public RuleWith<optim::Lamb> {
 public:
  StateTree create_state(const std::string&, const NDArray& weight) const override { return blank_states(weight, 2); }
  bool writes_copy() const override { return true; }

  void update(const Step& step, const StepOptions& options) override {
    if (step.multi_precision) return update_with_copy(step, options);
    const NDArray direction = invoke(lamb_update_phase1, arrays_of(step, 2), {direction_params(step, options)})[0];
    const auto [r1, r2] = norms(step.weight, direction);
    const DType dtype = step.weight.dtype();
    invoke(lamb_update_phase2, {step.weight, direction, r1.astype(dtype), r2.astype(dtype)}, step_params(step),
           {.out = {step.weight}});
  }

 private:
  void update_with_copy(const Step& step, const StepOptions& options) const {
    const StateTree& state = *step.state;
    require(state.is_tuple && state.tuple.size() == 2 && state.tuple[1].tuple.size() == 2, "[lamb] the state of ",
            step.name, " has no float32 copy of the weight, which multi_precision needs");
    const NDArray& copy = state.tuple[0].array;
    const std::vector<StateTree>& means = state.tuple[1].tuple;
    const NDArray direction =
        invoke(mp_lamb_update_phase1, {step.weight, step.grad, means[0].array, means[1].array, copy},
               {direction_params(step, options)})[0];
    const auto [r1, r2] = norms(copy, direction);
    invoke(mp_lamb_update_phase2, {step.weight, direction, r1, r2, copy}, {step_params(step)}, {.out = {step.weight}});
  }

  LambUpdatePhase1 direction_params(const Step& step, const StepOptions& options) const {
    return {.beta1 = own_.beta1,
            .beta2 = own_.beta2,
            .epsilon = own_.epsilon,
            .t = step.count,
            .bias_correction = own_.bias_correction,
            .wd = step.wd,
            .rescale_grad = options.rescale_grad,
            .clip_gradient = options.clip_argument()};
  }
  LambUpdatePhase2 step_params(const Step& step) const {
    return {.lr = step.lr, .lower_bound = bound(own_.lower_bound), .upper_bound = bound(own_.upper_bound)};
  }
  static double bound(const std::optional<double>& value) { return value && *value != 0 ? *value : -1; }

  static std::pair<NDArray, NDArray> norms(const NDArray& weight, const NDArray& direction) {
    const NDArray both = sqrt(invoke(multi_sum_sq, {weight, direction}, {.num_arrays = 2})[0]);
    return {both.slice(0, 1), both.slice(1, 2)};
  }
};

}  // namespace

UpdateRulePtr make_lamb() { return std::make_unique<Lamb>(); }

}  // namespace symbind
