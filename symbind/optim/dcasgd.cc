// Gradient descent that makes up for the delay of asynchronous gradients. The state is a pair: the momentum, if there
// is any, and the weight before the last step.
#include "symbind/exec/invoke.h"
#include "symbind/ops/optimizer.h"
#include "symbind/optim/arguments.h"
#include "symbind/optim/sgd_step.h"

namespace symbind {
namespace {

class Dcasgd final : public OptimizerWith<optim::Dcasgd> {
 public:
  using OptimizerWith::OptimizerWith;
  StateTree create_state(const ParamKey&, const NDArray& weight) override {
    return StateTree::of({sgd_state(weight, own_.momentum != 0), weight.copy()});
  }

  void update(const Update& one) override {
    update_count(one.key);
    NDArray last_step = one.state->tuple.at(0).array;
    if (!last_step) last_step = zeros(one.weight.shape(), one.weight.context(), one.weight.dtype());
    invoke(dcasgd_update, {one.weight, one.grad, last_step, one.state->tuple.at(1).array},
           {.lr = lr_of(one.key),
            .momentum = own_.momentum,
            .lamda = own_.lamda,
            .wd = wd_of(one.key),
            .rescale_grad = rescale_grad,
            .clip_gradient = clip_gradient.value_or(-1)},
           {.out = {one.weight}});
  }
};

}  // namespace

OptimizerPtr make_dcasgd(const OptimizerParams& params) { return std::make_shared<Dcasgd>(params); }

}  // namespace symbind
