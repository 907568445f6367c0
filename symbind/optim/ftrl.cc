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

class Ftrl final : public OptimizerWith<optim::Ftrl> {
 public:
  using OptimizerWith::OptimizerWith;
  StateTree create_state(const ParamKey&, const NDArray& weight) override { return blank_states(weight, 2); }
  void update(const Update& one) override {
    update_count(one.key);
    invoke(ftrl_update, {one.weight, one.grad, one.state->tuple.at(0).array, one.state->tuple.at(1).array},
           {.lr = lr_of(one.key),
            .lamda1 = own_.lamda1,
            .beta = own_.beta,
            .wd = wd_of(one.key),
            .rescale_grad = rescale_grad,
            .clip_gradient = clip_argument()},
           {.out = {one.weight}});
  }
};

class Ftml final : public OptimizerWith<optim::Ftml> {
 public:
  using OptimizerWith::OptimizerWith;
  StateTree create_state(const ParamKey&, const NDArray& weight) override { return blank_states(weight, 3); }
  void update(const Update& one) override {
    update_count(one.key);
    const std::vector<StateTree>& states = one.state->tuple;
    invoke(ftml_update, {one.weight, one.grad, states.at(0).array, states.at(1).array, states.at(2).array},
           {.lr = lr_of(one.key),
            .beta1 = own_.beta1,
            .beta2 = own_.beta2,
            .epsilon = own_.epsilon,
            .t = count_of(one.key),
            .wd = wd_of(one.key),
            .rescale_grad = rescale_grad,
            .clip_grad = clip_argument()},
           {.out = {one.weight}});
  }
};

}  // namespace

OptimizerPtr make_ftrl(const OptimizerParams& params) { return std::make_shared<Ftrl>(params); }
OptimizerPtr make_ftml(const OptimizerParams& params) { return std::make_shared<Ftml>(params); }

}  // namespace symbind
