// Stochastic gradient descent, with momentum if asked: many arrays in one pass.
#include "symbind/optim/arguments.h"
#include "symbind/optim/sgd_step.h"

namespace symbind {
namespace {

class Sgd final : public OptimizerWith<optim::Sgd> {
 public:
  using OptimizerWith::OptimizerWith;
  StateTree create_state(const ParamKey&, const NDArray& weight) override {
    return sgd_state(weight, own_.momentum != 0);
  }
  StateTree create_state_multi_precision(const ParamKey& key, const NDArray& weight) override {
    if (uses_master(weight)) return sgd_state_with_master(weight, own_.momentum != 0);
    return Optimizer::create_state_multi_precision(key, weight);
  }

  void update(const Update& one) override { update_many({&one, 1}); }
  void update_multi_precision(const Update& one) override { update_many({&one, 1}); }
  void update_many(std::span<const Update> updates) override {
    std::vector<SgdStep> steps;
    for (const Update& each : updates) update_count(each.key);
    for (const Update& each : updates)
      steps.push_back({each.weight, each.grad, each.state, lr_of(each.key), wd_of(each.key)});
    run_sgd(steps, {.momentum = own_.momentum, .rescale_grad = rescale_grad, .clip_gradient = clip_argument()});
  }
};

}  // namespace

OptimizerPtr make_sgd(const OptimizerParams& params) { return std::make_shared<Sgd>(params); }

}  // namespace symbind
