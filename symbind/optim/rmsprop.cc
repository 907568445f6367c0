// Steps divided by the root of the running mean square; the centered kind divides by the deviation and has a momentum.
#include "symbind/exec/invoke.h"
#include "symbind/ops/adaptive_optimizer.h"
#include "symbind/optim/arguments.h"

namespace symbind {
namespace {

class Rmsprop final : public Optimizer {
 public:
  explicit Rmsprop(const OptimizerParams& params) : Optimizer(with_default(params, "learning_rate", 0.001)) {
    OptimizerArguments(*this, params)
        .common()
        .take("gamma1", gamma1_)
        .take("gamma2", gamma2_)
        .take("epsilon", epsilon_)
        .take("centered", centered_)
        .take("clip_weights", clip_weights_)
        .finish();
  }
  std::string name() const override { return "rmsprop"; }
  StateTree create_state(const ParamKey&, const NDArray& weight) override {
    std::vector<StateTree> states;
    for (int i = 0; i < (centered_ ? 3 : 1); ++i)
      states.emplace_back(zeros(weight.shape(), weight.context(), weight.dtype()));
    return StateTree::of(std::move(states));
  }

  void update(const Update& one) override {
    update_count(one.key);
    const double lr = lr_of(one.key), decay = wd_of(one.key);
    const double clip_weights = clip_weights_ && *clip_weights_ != 0 ? *clip_weights_ : -1;
    const InvokeOptions into{.out = {one.weight}};
    const std::vector<StateTree>& states = one.state->tuple;
    if (centered_)
      invoke(rmspropalex_update, {one.weight, one.grad, states.at(0).array, states.at(1).array, states.at(2).array},
             {.lr = lr,
              .gamma1 = gamma1_,
              .gamma2 = gamma2_,
              .epsilon = epsilon_,
              .wd = decay,
              .rescale_grad = rescale_grad,
              .clip_gradient = clip_argument(),
              .clip_weights = clip_weights},
             into);
    else
      invoke(rmsprop_update, {one.weight, one.grad, states.at(0).array},
             {.lr = lr,
              .gamma1 = gamma1_,
              .epsilon = epsilon_,
              .wd = decay,
              .rescale_grad = rescale_grad,
              .clip_gradient = clip_argument(),
              .clip_weights = clip_weights},
             into);
  }

 private:
  double gamma1_ = 0.9, gamma2_ = 0.9, epsilon_ = 1e-8;
  bool centered_ = false;
  std::optional<double> clip_weights_;
};

}  // namespace

OptimizerPtr make_rmsprop(const OptimizerParams& params) { return std::make_shared<Rmsprop>(params); }

}  // namespace symbind
