// Gradient descent whose rate for each weight follows how large the weight is against its gradient. Biases and the
// parameters of normalization keep the common rate. When the rate changes, the momentum is scaled with it.
#include "symbind/exec/invoke.h"
#include "symbind/ops/multi_optimizer.h"
#include "symbind/optim/arguments.h"
#include "symbind/optim/sgd_step.h"

namespace symbind {
namespace {

class Lars final : public OptimizerWith<optim::Lars> {
 public:
  using OptimizerWith::OptimizerWith;
  bool decays(const std::string& parameter) const override { return parameter.ends_with("_weight"); }

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
    if (updates.empty()) return;
    for (const Update& each : updates) update_count(each.key);
    const double momentum = corrected_momentum();
    std::vector<SgdStep> steps;
    for (const Update& each : updates)
      steps.push_back({each.weight, each.grad, each.state, lr_of(each.key), wd_of(each.key)});
    scale_rates(updates, steps);
    run_sgd(steps, {.momentum = momentum, .rescale_grad = rescale_grad, .clip_gradient = clip_argument()});
  }

  ResumeState resume_state() const override {
    ResumeState state = Optimizer::resume_state();
    if (last_lr_) state.numbers["last_lr"] = *last_lr_;
    return state;
  }
  void restore(const ResumeState& state) override {
    Optimizer::restore(state);
    if (const auto found = state.numbers.find("last_lr"); found != state.numbers.end()) last_lr_ = found->second;
  }

 private:
  double corrected_momentum() {
    const double now = learning_rate(), before = last_lr_.value_or(now);
    last_lr_ = now;
    return own_.momentum_correction && before != 0 ? own_.momentum * (now / before) : own_.momentum;
  }

  void scale_rates(std::span<const Update> updates, std::vector<SgdStep>& steps) const {
    std::map<Context, std::vector<size_t>> scaled;
    for (size_t i = 0; i < updates.size(); ++i) {
      const std::string parameter = name_of(updates[i].key);
      if (!parameter.ends_with("gamma") && !parameter.ends_with("beta") && !parameter.ends_with("bias"))
        scaled[updates[i].weight.context()].push_back(i);
    }
    for (const auto& [context, which] : scaled) {
      std::vector<NDArray> weights, grads;
      std::vector<double> lrs, wds;
      for (const size_t i : which) {
        weights.push_back(steps[i].weight);
        grads.push_back(steps[i].grad);
        lrs.push_back(steps[i].lr);
        wds.push_back(steps[i].wd);
      }
      const Shape shape{static_cast<int64_t>(which.size())};
      const NDArray weight_squares = invoke(multi_sum_sq, weights, {.num_arrays = shape[0]})[0];
      const NDArray grad_squares = invoke(multi_sum_sq, grads, {.num_arrays = shape[0]})[0];
      const NDArray rates =
          invoke(multi_lars, {array(lrs, shape, context), weight_squares, grad_squares, array(wds, shape, context)},
                 {.eta = own_.eta, .eps = own_.eps, .rescale_grad = rescale_grad})[0];
      const std::vector<double> values = rates.to_vector<double>();
      for (size_t k = 0; k < which.size(); ++k) steps[which[k]].lr = values[k];
    }
  }

  std::optional<double> last_lr_;
};

}  // namespace

OptimizerPtr make_lars(const OptimizerParams& params) { return std::make_shared<Lars>(params); }

}  // namespace symbind
