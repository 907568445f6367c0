// Adam and its relatives: adam, adamw (weight decay apart from the gradient), adamax (the largest gradient instead of
// the mean square), nadam (with Nesterov's momentum).
// The state is a pair of running means.
#include <cmath>

#include "symbind/exec/invoke.h"
#include "symbind/ops/adaptive_optimizer.h"
#include "symbind/optim/arguments.h"

namespace symbind {
namespace {

template <class Options>
class MomentOptimizer : public OptimizerWith<Options> {
 public:
  using OptimizerWith<Options>::OptimizerWith;
  StateTree create_state(const ParamKey&, const NDArray& weight) override {
    const auto blank = [&] { return zeros(weight.shape(), weight.context(), weight.dtype()); };
    return StateTree::of({blank(), blank()});
  }

 protected:
  static std::vector<NDArray> arrays(const Update& one) {
    return {one.weight, one.grad, one.state->tuple.at(0).array, one.state->tuple.at(1).array};
  }
};

class Adam final : public MomentOptimizer<optim::Adam> {
 public:
  using MomentOptimizer::MomentOptimizer;

  void update(const Update& one) override {
    update_count(one.key);
    const auto t = static_cast<double>(count_of(one.key));
    const double lr = lr_of(one.key) * std::sqrt(1 - std::pow(own_.beta2, t)) / (1 - std::pow(own_.beta1, t));
    invoke(adam_update, arrays(one),
           {.lr = lr,
            .beta1 = own_.beta1,
            .beta2 = own_.beta2,
            .epsilon = own_.epsilon,
            .wd = wd_of(one.key),
            .rescale_grad = rescale_grad,
            .clip_gradient = clip_argument()},
           {.out = {one.weight}});
  }
};

// The decay acts on the weight beside the step, so it is scaled neither by the means nor by their correction.
class AdamW final : public MomentOptimizer<optim::AdamW> {
 public:
  using MomentOptimizer::MomentOptimizer;

  void update(const Update& one) override {
    update_count(one.key);
    const auto t = static_cast<double>(count_of(one.key));
    const double correction =
        own_.correct_bias ? std::sqrt(1 - std::pow(own_.beta2, t)) / (1 - std::pow(own_.beta1, t)) : 1;
    invoke(adamw_update, arrays(one),
           {.lr = correction,
            .beta1 = own_.beta1,
            .beta2 = own_.beta2,
            .epsilon = own_.epsilon,
            .wd = wd_of(one.key),
            .eta = lr_of(one.key),
            .rescale_grad = rescale_grad,
            .clip_gradient = clip_argument()},
           {.out = {one.weight}});
  }
};

class Adamax final : public MomentOptimizer<optim::Adamax> {
 public:
  using MomentOptimizer::MomentOptimizer;

  void update(const Update& one) override {
    update_count(one.key);
    const double lr = lr_of(one.key) / (1 - std::pow(own_.beta1, static_cast<double>(count_of(one.key))));
    invoke(adamax_update, arrays(one),
           {.lr = lr,
            .beta1 = own_.beta1,
            .beta2 = own_.beta2,
            .wd = wd_of(one.key),
            .rescale_grad = rescale_grad,
            .clip_gradient = clip_gradient.value_or(-1)},
           {.out = {one.weight}});
  }
};

// Its schedule of momenta is one product over all updates of all parameters, as MXNet has it.
class Nadam final : public MomentOptimizer<optim::Nadam> {
 public:
  using MomentOptimizer::MomentOptimizer;

  void update(const Update& one) override {
    update_count(one.key);
    const auto t = static_cast<double>(count_of(one.key));
    const double now = momentum_at(t), next = momentum_at(t + 1);
    product_ *= now;
    invoke(nadam_update, arrays(one),
           {.lr = lr_of(one.key),
            .beta1 = own_.beta1,
            .beta2 = own_.beta2,
            .epsilon = own_.epsilon,
            .grad_share = (1 - now) / (1 - product_),
            .mean_share = next / (1 - product_ * next),
            .square_correction = 1 - std::pow(own_.beta2, t),
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
  double momentum_at(double t) const { return own_.beta1 * (1 - 0.5 * std::pow(0.96, t * own_.schedule_decay)); }

  double product_ = 1;
};

}  // namespace

OptimizerPtr make_adam(const OptimizerParams& params) { return std::make_shared<Adam>(params); }
OptimizerPtr make_adamw(const OptimizerParams& params) { return std::make_shared<AdamW>(params); }
OptimizerPtr make_adamax(const OptimizerParams& params) { return std::make_shared<Adamax>(params); }
OptimizerPtr make_nadam(const OptimizerParams& params) { return std::make_shared<Nadam>(params); }

}  // namespace symbind
