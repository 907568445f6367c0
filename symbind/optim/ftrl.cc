// The leader's way: ftrl follows the regularized leader and keeps weights at zero that matter little, ftml the moving
// leader.
#include "symbind/exec/invoke.h"
#include "symbind/ops/adaptive_optimizer.h"
#include "symbind/optim/arguments.h"

namespace symbind {
namespace {

StateTree blank_states(const NDArray& weight, int count) {
  std::vector<StateTree> states;
  for (int i = 0; i < count; ++i) states.emplace_back(zeros(weight.shape(), weight.context(), weight.dtype()));
  return StateTree::of(std::move(states));
}

class Ftrl final : public Optimizer {
 public:
  explicit Ftrl(const OptimizerParams& params) : Optimizer(with_default(params, "learning_rate", 0.1)) {
    OptimizerArguments(*this, params).common().take("lamda1", lamda1_).take("beta", beta_).finish();
  }
  std::string name() const override { return "ftrl"; }
  StateTree create_state(const ParamKey&, const NDArray& weight) override { return blank_states(weight, 2); }
  void update(const Update& one) override {
    update_count(one.key);
    invoke(ftrl_update, {one.weight, one.grad, one.state->tuple.at(0).array, one.state->tuple.at(1).array},
           {.lr = lr_of(one.key),
            .lamda1 = lamda1_,
            .beta = beta_,
            .wd = wd_of(one.key),
            .rescale_grad = rescale_grad,
            .clip_gradient = clip_argument()},
           {.out = {one.weight}});
  }

 private:
  double lamda1_ = 0.01, beta_ = 1;
};

class Ftml final : public Optimizer {
 public:
  explicit Ftml(const OptimizerParams& params) : Optimizer(params) {
    OptimizerArguments(*this, params)
        .common()
        .take("beta1", beta1_)
        .take("beta2", beta2_)
        .take("epsilon", epsilon_)
        .finish();
  }
  std::string name() const override { return "ftml"; }
  StateTree create_state(const ParamKey&, const NDArray& weight) override { return blank_states(weight, 3); }
  void update(const Update& one) override {
    update_count(one.key);
    const std::vector<StateTree>& states = one.state->tuple;
    invoke(ftml_update, {one.weight, one.grad, states.at(0).array, states.at(1).array, states.at(2).array},
           {.lr = lr_of(one.key),
            .beta1 = beta1_,
            .beta2 = beta2_,
            .epsilon = epsilon_,
            .t = count_of(one.key),
            .wd = wd_of(one.key),
            .rescale_grad = rescale_grad,
            .clip_grad = clip_argument()},
           {.out = {one.weight}});
  }

 private:
  double beta1_ = 0.6, beta2_ = 0.999, epsilon_ = 1e-8;
};

}  // namespace

OptimizerPtr make_ftrl(const OptimizerParams& params) { return std::make_shared<Ftrl>(params); }
OptimizerPtr make_ftml(const OptimizerParams& params) { return std::make_shared<Ftml>(params); }

}  // namespace symbind
