// Adam and its relatives: adam, adamw (decoupled weight decay), adamax (the maximum norm instead of the mean square),
// nadam (with Nesterov's momentum).
// The state is a pair of running means.
#include <cmath>

#include "symbind/exec/invoke.h"
#include "symbind/files/states.h"
#include "symbind/ops/adaptive_optimizer.h"
#include "symbind/optim/rules.h"

namespace symbind {
namespace {

template <class Options>
class MomentRule : public OneOperatorRule<Options> {
 public:
  StateTree create_state(const std::string&, const NDArray& weight) const override { return blank_states(weight, 2); }
};

class Adam final : public MomentRule<optim::Adam> {
 public:
  UpdateUnit update_unit() const override { return UpdateUnit::element; }
  Repeats repeats() const override { return Repeats::with_count; }
  void update(const Step& step, const StepOptions& options) override {
    const auto t = static_cast<double>(step.count);
    invoke(adam_update, arrays_of(step, 2),
           {.lr = step.lr * std::sqrt(1 - std::pow(own_.beta2, t)) / (1 - std::pow(own_.beta1, t)),
            .beta1 = own_.beta1,
            .beta2 = own_.beta2,
            .epsilon = own_.epsilon,
            .wd = step.wd,
            .rescale_grad = options.rescale_grad,
            .clip_gradient = options.clip_argument()},
           {.out = {step.weight}});
  }
};

// The decay acts on the weight separately from the step, so it is scaled neither by the moments nor by their bias
// correction.
class AdamW final : public MomentRule<optim::AdamW> {
 public:
  UpdateUnit update_unit() const override { return UpdateUnit::element; }
  Repeats repeats() const override { return Repeats::with_count; }
  void update(const Step& step, const StepOptions& options) override {
    const auto t = static_cast<double>(step.count);
    const double correction =
        own_.correct_bias ? std::sqrt(1 - std::pow(own_.beta2, t)) / (1 - std::pow(own_.beta1, t)) : 1;
    invoke(adamw_step, arrays_of(step, 2),
           {.lr = correction,
            .beta1 = own_.beta1,
            .beta2 = own_.beta2,
            .epsilon = own_.epsilon,
            .wd = step.wd,
            .eta = step.lr,
            .rescale_grad = options.rescale_grad,
            .clip_gradient = options.clip_argument()},
           {.out = {step.weight}});
  }
};

class Adamax final : public MomentRule<optim::Adamax> {
 public:
  UpdateUnit update_unit() const override { return UpdateUnit::element; }
  Repeats repeats() const override { return Repeats::with_count; }
  void update(const Step& step, const StepOptions& options) override {
    invoke(adamax_update, arrays_of(step, 2),
           {.lr = step.lr / (1 - std::pow(own_.beta1, static_cast<double>(step.count))),
            .beta1 = own_.beta1,
            .beta2 = own_.beta2,
            .wd = step.wd,
            .rescale_grad = options.rescale_grad,
            .clip_gradient = options.clip_gradient.value_or(-1)},
           {.out = {step.weight}});
  }
};

// Its schedule of momenta is one product over all updates of all parameters, as in MXNet.
class Nadam final : public MomentRule<optim::Nadam> {
 public:
  UpdateUnit update_unit() const override { return UpdateUnit::sequence; }
  void update(const Step& step, const StepOptions& options) override {
    const auto t = static_cast<double>(step.count);
    const double now = momentum_at(t), next = momentum_at(t + 1);
    product_ *= now;
    invoke(nadam_update, arrays_of(step, 2),
           {.lr = step.lr,
            .beta1 = own_.beta1,
            .beta2 = own_.beta2,
            .epsilon = own_.epsilon,
            .grad_share = (1 - now) / (1 - product_),
            .mean_share = next / (1 - product_ * next),
            .square_correction = 1 - std::pow(own_.beta2, t),
            .wd = step.wd,
            .rescale_grad = options.rescale_grad,
            .clip_gradient = options.clip_gradient.value_or(-1)},
           {.out = {step.weight}});
  }

  void save(ResumeState& state) const override { state.numbers["m_schedule"] = product_; }
  void restore(const ResumeState& state) override {
    if (const auto found = state.numbers.find("m_schedule"); found != state.numbers.end()) product_ = found->second;
  }

 private:
  double momentum_at(double t) const { return own_.beta1 * (1 - 0.5 * std::pow(0.96, t * own_.schedule_decay)); }

  double product_ = 1;
};

}  // namespace

UpdateRulePtr make_adam() { return std::make_unique<Adam>(); }
UpdateRulePtr make_adamw() { return std::make_unique<AdamW>(); }
UpdateRulePtr make_adamax() { return std::make_unique<Adamax>(); }
UpdateRulePtr make_nadam() { return std::make_unique<Nadam>(); }

}  // namespace symbind
