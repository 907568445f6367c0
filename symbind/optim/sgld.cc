// Stochastic gradient Langevin dynamics: half a step of gradient descent, and noise of variance lr.
#include "symbind/exec/invoke.h"
#include "symbind/ops/optimizer.h"
#include "symbind/optim/arguments.h"

namespace symbind {
namespace {

class Sgld final : public OptimizerWith<optim::Sgld> {
 public:
  using OptimizerWith::OptimizerWith;
  StateTree create_state(const ParamKey&, const NDArray&) override { return {}; }

  void update(const Update& one) override {
    update_count(one.key);
    invoke(sgld_update, {one.weight, one.grad},
           {.lr = lr_of(one.key),
            .wd = wd_of(one.key),
            .rescale_grad = rescale_grad,
            .clip_gradient = clip_gradient.value_or(-1)},
           {.out = {one.weight}});
  }
};

}  // namespace

OptimizerPtr make_sgld(const OptimizerParams& params) { return std::make_shared<Sgld>(params); }

}  // namespace symbind
