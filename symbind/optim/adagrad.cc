// Steps divided by the root of all squares so far: of each element (adagrad), or of each row (groupadagrad).
#include "symbind/exec/invoke.h"
#include "symbind/ops/adaptive_optimizer.h"
#include "symbind/optim/arguments.h"

namespace symbind {
namespace {

class Adagrad final : public Optimizer {
 public:
  explicit Adagrad(const OptimizerParams& params) : Optimizer(params) {
    OptimizerArguments(*this, params).common().take("eps", epsilon_).finish();
  }
  std::string name() const override { return "adagrad"; }
  StateTree create_state(const ParamKey&, const NDArray& weight) override {
    return zeros(weight.shape(), weight.context(), weight.dtype());
  }
  void update(const Update& one) override {
    update_count(one.key);
    invoke(adagrad_update, {one.weight, one.grad, one.state->array},
           {.lr = lr_of(one.key),
            .epsilon = epsilon_,
            .wd = wd_of(one.key),
            .rescale_grad = rescale_grad,
            .clip_gradient = clip_gradient.value_or(-1)},
           {.out = {one.weight}});
  }

 private:
  double epsilon_ = 1e-7;
};

class GroupAdagrad final : public Optimizer {
 public:
  explicit GroupAdagrad(const OptimizerParams& params) : Optimizer(params) {
    OptimizerArguments(*this, params).common().take("eps", epsilon_).finish();
  }
  std::string name() const override { return "groupadagrad"; }
  StateTree create_state(const ParamKey& key, const NDArray& weight) override {
    require(weight.rank() == 2, "[groupadagrad] parameter ", name_of(key), " must be a matrix: ", weight.shape());
    return zeros({weight.shape()[0], 1}, weight.context(), weight.dtype());
  }
  void update(const Update& one) override {
    update_count(one.key);
    require(wd_of(one.key) == 0, "[groupadagrad] knows no weight decay: parameter ", name_of(one.key), " has wd ",
            wd_of(one.key));
    invoke(group_adagrad_update, {one.weight, one.grad, one.state->array},
           {.lr = lr_of(one.key), .rescale_grad = rescale_grad, .clip_gradient = clip_argument(), .epsilon = epsilon_},
           {.out = {one.weight}});
  }

 private:
  double epsilon_ = 1e-5;
};

}  // namespace

OptimizerPtr make_adagrad(const OptimizerParams& params) { return std::make_shared<Adagrad>(params); }
OptimizerPtr make_group_adagrad(const OptimizerParams& params) { return std::make_shared<GroupAdagrad>(params); }

}  // namespace symbind
