// Gradient descent with Nesterov's momentum. Without momentum it is plain gradient descent.
#include "symbind/exec/invoke.h"
#include "symbind/ops/optimizer.h"
#include "symbind/optim/arguments.h"
#include "symbind/optim/sgd_step.h"

namespace symbind {
namespace {

class Nag final : public OptimizerWith<optim::Nag> {
 public:
  using OptimizerWith::OptimizerWith;
  StateTree create_state(const ParamKey&, const NDArray& weight) override {
    return sgd_state(weight, own_.momentum != 0);
  }
  StateTree create_state_multi_precision(const ParamKey& key, const NDArray& weight) override {
    if (uses_master(weight)) return sgd_state_with_master(weight, own_.momentum != 0);
    return Optimizer::create_state_multi_precision(key, weight);
  }

  void update(const Update& one) override {
    update_count(one.key);
    const double lr = lr_of(one.key), decay = wd_of(one.key);
    const SgdStep step{one.weight, one.grad, one.state, lr, decay};
    if (own_.momentum == 0)
      return run_sgd({&step, 1}, {.rescale_grad = rescale_grad, .clip_gradient = clip_argument()});
    const NagMomUpdate params{.lr = lr,
                              .momentum = own_.momentum,
                              .wd = decay,
                              .rescale_grad = rescale_grad,
                              .clip_gradient = clip_argument()};
    const StateTree& state = *one.state;
    if (state.is_tuple)
      invoke(mp_nag_mom_update, {one.weight, one.grad, state.tuple.at(0).array, state.tuple.at(1).array}, {params},
             {.out = {one.weight}});
    else
      invoke(nag_mom_update, {one.weight, one.grad, state.array}, params, {.out = {one.weight}});
  }
  void update_multi_precision(const Update& one) override { update(one); }
};

}  // namespace

OptimizerPtr make_nag(const OptimizerParams& params) { return std::make_shared<Nag>(params); }

}  // namespace symbind
