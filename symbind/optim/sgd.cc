// Stochastic gradient descent, with momentum if asked: many arrays in one pass.
#include "symbind/optim/arguments.h"
#include "symbind/optim/sgd_step.h"

namespace symbind {
namespace {

class Sgd final : public Optimizer {
 public:
  explicit Sgd(const OptimizerParams& params) : Optimizer(params) {
    OptimizerArguments(*this, params).common().take("momentum", momentum_).take("lazy_update", lazy_update_).finish();
  }
  std::string name() const override { return "sgd"; }

  StateTree create_state(const ParamKey&, const NDArray& weight) override { return sgd_state(weight, momentum_ != 0); }
  StateTree create_state_multi_precision(const ParamKey& key, const NDArray& weight) override {
    if (uses_master(weight)) return sgd_state_with_master(weight, momentum_ != 0);
    return Optimizer::create_state_multi_precision(key, weight);
  }

  void update(const Update& one) override { update_many({&one, 1}); }
  void update_multi_precision(const Update& one) override { update_many({&one, 1}); }
  void update_many(std::span<const Update> updates) override {
    std::vector<SgdStep> steps;
    for (const Update& each : updates) update_count(each.key);
    for (const Update& each : updates)
      steps.push_back({each.weight, each.grad, each.state, lr_of(each.key), wd_of(each.key)});
    run_sgd(steps, {.momentum = momentum_, .rescale_grad = rescale_grad, .clip_gradient = clip_argument()});
  }

 private:
  double momentum_ = 0;
  bool lazy_update_ = true;  // for sparse gradients: without effect
};

}  // namespace

OptimizerPtr make_sgd(const OptimizerParams& params) { return std::make_shared<Sgd>(params); }

}  // namespace symbind
