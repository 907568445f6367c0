// Steps divided by the root of the running mean square; the centered kind divides by the deviation and has a momentum.
#include "symbind/exec/invoke.h"
#include "symbind/ops/adaptive_optimizer.h"
#include "symbind/optim/arguments.h"

namespace symbind {
namespace {

class Rmsprop final : public OptimizerWith<optim::RmsProp> {
 public:
  using OptimizerWith::OptimizerWith;
  StateTree create_state(const ParamKey&, const NDArray& weight) override {
    std::vector<StateTree> states;
    for (int i = 0; i < (own_.centered ? 3 : 1); ++i)
      states.emplace_back(zeros(weight.shape(), weight.context(), weight.dtype()));
    return StateTree::of(std::move(states));
  }

  void update(const Update& one) override {
    update_count(one.key);
    const double lr = lr_of(one.key), decay = wd_of(one.key);
    const double clip_weights = own_.clip_weights && *own_.clip_weights != 0 ? *own_.clip_weights : -1;
    const InvokeOptions into{.out = {one.weight}};
    const std::vector<StateTree>& states = one.state->tuple;
    if (own_.centered)
      invoke(rmspropalex_update, {one.weight, one.grad, states.at(0).array, states.at(1).array, states.at(2).array},
             {.lr = lr,
              .gamma1 = own_.gamma1,
              .gamma2 = own_.gamma2,
              .epsilon = own_.epsilon,
              .wd = decay,
              .rescale_grad = rescale_grad,
              .clip_gradient = clip_argument(),
              .clip_weights = clip_weights},
             into);
    else
      invoke(rmsprop_update, {one.weight, one.grad, states.at(0).array},
             {.lr = lr,
              .gamma1 = own_.gamma1,
              .epsilon = own_.epsilon,
              .wd = decay,
              .rescale_grad = rescale_grad,
              .clip_gradient = clip_argument(),
              .clip_weights = clip_weights},
             into);
  }
};

}  // namespace

OptimizerPtr make_rmsprop(const OptimizerParams& params) { return std::make_shared<Rmsprop>(params); }

}  // namespace symbind
