// Adam and its kin: adam, adamax (the largest gradient instead of the mean square), nadam (with Nesterov's momentum).
// The state is a pair of running means.
#include <cmath>

#include "symbind/exec/invoke.h"
#include "symbind/ops/adaptive_optimizer.h"
#include "symbind/optim/arguments.h"

namespace symbind {
namespace {

class MomentOptimizer : public Optimizer {
 public:
  explicit MomentOptimizer(const OptimizerParams& params) : Optimizer(params) {}
  StateTree create_state(const ParamKey&, const NDArray& weight) override {
    const auto blank = [&] { return zeros(weight.shape(), weight.context(), weight.dtype()); };
    return StateTree::of({blank(), blank()});
  }

 protected:
  static std::vector<NDArray> arrays(const Update& one) {
    return {one.weight, one.grad, one.state->tuple.at(0).array, one.state->tuple.at(1).array};
  }
  double beta1_ = 0.9, beta2_ = 0.999;
};

class Adam final : public MomentOptimizer {
 public:
  explicit Adam(const OptimizerParams& params) : MomentOptimizer(with_default(params, "learning_rate", 0.001)) {
    OptimizerArguments(*this, params)
        .common()
        .take("beta1", beta1_)
        .take("beta2", beta2_)
        .take("epsilon", epsilon_)
        .take("lazy_update", lazy_update_)
        .finish();
  }
  std::string name() const override { return "adam"; }

  void update(const Update& one) override {
    update_count(one.key);
    const auto t = static_cast<double>(count_of(one.key));
    const double lr = lr_of(one.key) * std::sqrt(1 - std::pow(beta2_, t)) / (1 - std::pow(beta1_, t));
    invoke(adam_update, arrays(one),
           {.lr = lr,
            .beta1 = beta1_,
            .beta2 = beta2_,
            .epsilon = epsilon_,
            .wd = wd_of(one.key),
            .rescale_grad = rescale_grad,
            .clip_gradient = clip_argument()},
           {.out = {one.weight}});
  }

 private:
  double epsilon_ = 1e-8;
  bool lazy_update_ = true;  // for sparse gradients: without effect
};

class Adamax final : public MomentOptimizer {
 public:
  explicit Adamax(const OptimizerParams& params) : MomentOptimizer(with_default(params, "learning_rate", 0.002)) {
    OptimizerArguments(*this, params).common().take("beta1", beta1_).take("beta2", beta2_).finish();
  }
  std::string name() const override { return "adamax"; }

  void update(const Update& one) override {
    update_count(one.key);
    const double lr = lr_of(one.key) / (1 - std::pow(beta1_, static_cast<double>(count_of(one.key))));
    invoke(adamax_update, arrays(one),
           {.lr = lr,
            .beta1 = beta1_,
            .beta2 = beta2_,
            .wd = wd_of(one.key),
            .rescale_grad = rescale_grad,
            .clip_gradient = clip_gradient.value_or(-1)},
           {.out = {one.weight}});
  }
};

// Its schedule of momenta is one product over all updates of all parameters, as MXNet has it.
class Nadam final : public MomentOptimizer {
 public:
  explicit Nadam(const OptimizerParams& params) : MomentOptimizer(with_default(params, "learning_rate", 0.001)) {
    OptimizerArguments(*this, params)
        .common()
        .take("beta1", beta1_)
        .take("beta2", beta2_)
        .take("epsilon", epsilon_)
        .take("schedule_decay", schedule_decay_)
        .finish();
  }
  std::string name() const override { return "nadam"; }

  void update(const Update& one) override {
    update_count(one.key);
    const auto t = static_cast<double>(count_of(one.key));
    const double now = momentum_at(t), next = momentum_at(t + 1);
    product_ *= now;
    invoke(nadam_update, arrays(one),
           {.lr = lr_of(one.key),
            .beta1 = beta1_,
            .beta2 = beta2_,
            .epsilon = epsilon_,
            .grad_share = (1 - now) / (1 - product_),
            .mean_share = next / (1 - product_ * next),
            .square_correction = 1 - std::pow(beta2_, t),
            .wd = wd_of(one.key),
            .rescale_grad = rescale_grad,
            .clip_gradient = clip_gradient.value_or(-1)},
           {.out = {one.weight}});
  }

  ResumeState resume_state() const override {
    ResumeState state = Optimizer::resume_state();
    state.numbers["m_schedule"] = product_;
    return state;
  }
  void restore(const ResumeState& state) override {
    Optimizer::restore(state);
    if (const auto found = state.numbers.find("m_schedule"); found != state.numbers.end()) product_ = found->second;
  }

 private:
  double momentum_at(double t) const { return beta1_ * (1 - 0.5 * std::pow(0.96, t * schedule_decay_)); }

  double epsilon_ = 1e-8, schedule_decay_ = 0.004;
  double product_ = 1;
};

}  // namespace

OptimizerPtr make_adam(const OptimizerParams& params) { return std::make_shared<Adam>(params); }
OptimizerPtr make_adamax(const OptimizerParams& params) { return std::make_shared<Adamax>(params); }
OptimizerPtr make_nadam(const OptimizerParams& params) { return std::make_shared<Nadam>(params); }

}  // namespace symbind
