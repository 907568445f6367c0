// Gradient descent whose rate for each weight is scaled by the ratio of the norms of weight and gradient. Biases and
// the parameters of normalization keep the common rate. When the rate changes, the momentum is scaled with it.
#include <map>

#include "symbind/exec/invoke.h"
#include "symbind/files/states.h"
#include "symbind/ops/multi_optimizer.h"
#include "symbind/optim/rules.h"
#include "symbind/optim/sgd_step.h"

namespace symbind {
namespace {

class Lars final : public MomentumRule<optim::Lars> {
 public:
  // The momentum is corrected by the rate of the previous call, which is that of the last step.
  UpdateUnit update_unit() const override { return UpdateUnit::step; }
  bool decays(const std::string& parameter) const override { return parameter.ends_with("_weight"); }

  void update(const Step& step, const StepOptions& options) override { update_many({&step, 1}, options); }
  bool joint() const override { return true; }
  void update_many(std::span<const Step> given, const StepOptions& options) override {
    if (given.empty()) return;
    const double momentum = corrected_momentum(given[0].learning_rate);
    std::vector<Step> steps(given.begin(), given.end());
    scale_rates(steps, options.rescale_grad);
    run_sgd(steps, momentum, options);
  }

  void save(ResumeState& state) const override {
    if (last_lr_) state.numbers["last_lr"] = *last_lr_;
  }
  void restore(const ResumeState& state) override {
    if (const auto found = state.numbers.find("last_lr"); found != state.numbers.end()) last_lr_ = found->second;
  }

 private:
  double corrected_momentum(double now) {
    const double before = last_lr_.value_or(now);
    last_lr_ = now;
    return own_.momentum_correction && before != 0 ? own_.momentum * (now / before) : own_.momentum;
  }

  void scale_rates(std::vector<Step>& steps, double rescale_grad) const {
    std::map<Context, std::vector<size_t>> scaled;
    for (size_t i = 0; i < steps.size(); ++i) {
      const std::string& parameter = steps[i].name;
      if (!parameter.ends_with("gamma") && !parameter.ends_with("beta") && !parameter.ends_with("bias"))
        scaled[steps[i].weight.context()].push_back(i);
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

UpdateRulePtr make_lars() { return std::make_unique<Lars>(); }

}  // namespace symbind
