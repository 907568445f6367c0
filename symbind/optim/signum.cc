// Steps along the sign of the running mean of the gradient (signum), or of the gradient itself (signsgd).
#include "symbind/exec/invoke.h"
#include "symbind/ops/optimizer.h"
#include "symbind/optim/arguments.h"
#include "symbind/optim/sgd_step.h"

namespace symbind {
namespace {

class Signum final : public OptimizerWith<optim::Signum> {
 public:
  using OptimizerWith::OptimizerWith;
  StateTree create_state(const ParamKey&, const NDArray& weight) override {
    return sgd_state(weight, own_.momentum != 0);
  }

  void update(const Update& one) override {
    update_count(one.key);
    const double lr = lr_of(one.key), decay = wd_of(one.key);
    const InvokeOptions into{.out = {one.weight}};
    if (one.state->array)
      invoke(signum_update, {one.weight, one.grad, one.state->array},
             {.lr = lr,
              .momentum = own_.momentum,
              .wd = decay,
              .rescale_grad = rescale_grad,
              .clip_gradient = clip_argument(),
              .wd_lh = own_.wd_lh},
             into);
    else
      invoke(signsgd_update, {one.weight, one.grad},
             {.lr = lr, .wd = decay, .rescale_grad = rescale_grad, .clip_gradient = clip_argument()}, into);
  }
};

}  // namespace

OptimizerPtr make_signum(const OptimizerParams& params) { return std::make_shared<Signum>(params); }
OptimizerPtr make_signsgd(const OptimizerParams& params) {
  return make_signum(with_default(params, "momentum", optim::SignSgd{}.momentum));
}

}  // namespace symbind
