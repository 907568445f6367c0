// Steps divided by the root of all squares so far: of each element (adagrad), or of each row (groupadagrad).
#include "symbind/core/error.h"
#include "symbind/exec/invoke.h"
#include "symbind/ops/adaptive_optimizer.h"
#include "symbind/optim/rules.h"

namespace symbind {
namespace {

class Adagrad final : public OneOperatorRule<optim::AdaGrad> {
 public:
  UpdateUnit update_unit() const override { return UpdateUnit::element; }
  Repeats repeats() const override { return Repeats::without_count; }
  StateTree create_state(const std::string&, const NDArray& weight) const override { return blank_state(weight); }
  void update(const Step& step, const StepOptions& options) override {
    invoke(adagrad_update, {step.weight, step.grad, step.state->array},
           {.lr = step.lr,
            .epsilon = own_.eps,
            .wd = step.wd,
            .rescale_grad = options.rescale_grad,
            .clip_gradient = options.clip_gradient.value_or(-1)},
           {.out = {step.weight}});
  }
};

class GroupAdagrad final : public RuleWith<optim::GroupAdaGrad> {
 public:
  StateTree create_state(const std::string& parameter, const NDArray& weight) const override {
    require(weight.rank() == 2, "[groupadagrad] parameter ", parameter, " must be a matrix: ", weight.shape());
    return zeros({weight.shape()[0], 1}, weight.context(), weight.dtype());
  }
  void update(const Step& step, const StepOptions& options) override {
    require(step.wd == 0, "[groupadagrad] does not support weight decay: parameter ", step.name, " has wd ", step.wd);
    invoke(group_adagrad_update, {step.weight, step.grad, step.state->array},
           {.lr = step.lr,
            .rescale_grad = options.rescale_grad,
            .clip_gradient = options.clip_argument(),
            .epsilon = own_.eps},
           {.out = {step.weight}});
  }
};

}  // namespace

UpdateRulePtr make_adagrad() { return std::make_unique<Adagrad>(); }
UpdateRulePtr make_group_adagrad() { return std::make_unique<GroupAdagrad>(); }

}  // namespace symbind
