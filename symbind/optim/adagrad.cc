// Steps divided by the root of all squares so far: of each element (adagrad), or of each row (groupadagrad).
#include "symbind/exec/invoke.h"
#include "symbind/ops/adaptive_optimizer.h"
#include "symbind/optim/arguments.h"

namespace symbind {
namespace {

class Adagrad final : public OptimizerWith<optim::AdaGrad> {
 public:
  using OptimizerWith::OptimizerWith;
  StateTree create_state(const ParamKey&, const NDArray& weight) override {
    return zeros(weight.shape(), weight.context(), weight.dtype());
  }
  void update(const Update& one) override {
    update_count(one.key);
    invoke(adagrad_update, {one.weight, one.grad, one.state->array},
           {.lr = lr_of(one.key),
            .epsilon = own_.eps,
            .wd = wd_of(one.key),
            .rescale_grad = rescale_grad,
            .clip_gradient = clip_gradient.value_or(-1)},
           {.out = {one.weight}});
  }
};

class GroupAdagrad final : public OptimizerWith<optim::GroupAdaGrad> {
 public:
  using OptimizerWith::OptimizerWith;
  StateTree create_state(const ParamKey& key, const NDArray& weight) override {
    require(weight.rank() == 2, "[groupadagrad] parameter ", name_of(key), " must be a matrix: ", weight.shape());
    return zeros({weight.shape()[0], 1}, weight.context(), weight.dtype());
  }
  void update(const Update& one) override {
    update_count(one.key);
    require(wd_of(one.key) == 0, "[groupadagrad] knows no weight decay: parameter ", name_of(one.key), " has wd ",
            wd_of(one.key));
    invoke(group_adagrad_update, {one.weight, one.grad, one.state->array},
           {.lr = lr_of(one.key), .rescale_grad = rescale_grad, .clip_gradient = clip_argument(), .epsilon = own_.eps},
           {.out = {one.weight}});
  }
};

}  // namespace

OptimizerPtr make_adagrad(const OptimizerParams& params) { return std::make_shared<Adagrad>(params); }
OptimizerPtr make_group_adagrad(const OptimizerParams& params) { return std::make_shared<GroupAdagrad>(params); }

}  // namespace symbind
