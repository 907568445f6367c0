// Steps in the unit of the weight: the root mean square of the last steps over that of the last gradients. The learning
// rate plays no part.
#include "symbind/exec/invoke.h"
#include "symbind/ops/adaptive_optimizer.h"
#include "symbind/optim/arguments.h"

namespace symbind {
namespace {

class Adadelta final : public OptimizerWith<optim::AdaDelta> {
 public:
  using OptimizerWith::OptimizerWith;
  StateTree create_state(const ParamKey&, const NDArray& weight) override {
    const auto blank = [&] { return zeros(weight.shape(), weight.context(), weight.dtype()); };
    return StateTree::of({blank(), blank()});
  }
  void update(const Update& one) override {
    update_count(one.key);
    invoke(adadelta_update, {one.weight, one.grad, one.state->tuple.at(0).array, one.state->tuple.at(1).array},
           {.rho = own_.rho,
            .epsilon = own_.epsilon,
            .wd = wd_of(one.key),
            .rescale_grad = rescale_grad,
            .clip_gradient = clip_gradient.value_or(-1)},
           {.out = {one.weight}});
  }
};

}  // namespace

OptimizerPtr make_adadelta(const OptimizerParams& params) { return std::make_shared<Adadelta>(params); }

}  // namespace symbind
