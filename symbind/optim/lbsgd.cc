// Gradient descent for large batches: gradients of `batch_scale` steps are accumulated before an update, with a rate
// that grows during the first epochs. The accumulated gradients belong to the rule, not to the states: training that
// stops between two updates resumes with their count, but without the accumulated gradients.
#include <algorithm>
#include <cmath>
#include <map>

#include "symbind/exec/arithmetic.h"
#include "symbind/exec/invoke.h"
#include "symbind/ops/multi_optimizer.h"
#include "symbind/optim/rules.h"
#include "symbind/optim/sgd_step.h"
#include "symbind/optim/state_keys.h"

namespace symbind {
namespace {

class Lbsgd final : public RuleWith<optim::Lbsgd> {
 public:
  void check_arguments() const override {
    require(own_.batch_scale >= 1, "[lbsgd] batch_scale must be at least 1: ", own_.batch_scale);
  }
  StateTree create_state(const std::string&, const NDArray& weight) const override {
    return sgd_state(weight, own_.momentum != 0);
  }

  // The rate is that of the updates before this one.
  Counting counting() const override { return Counting::after_rate; }

  void update(const Step& given, const StepOptions& options) override {
    Gathered& gathered = gather(given.key, given.grad);
    if (gathered.count % own_.batch_scale != 0) return;
    Step step = given;
    step.grad = gathered.sum / static_cast<double>(own_.batch_scale);
    gathered.sum = {};
    step.lr *= own_.warmup_strategy == "lars" ? norm_ratio(step.weight, step.grad, step.wd) : warm_up(gathered.count);
    run_sgd({&step, 1}, own_.momentum, options);
  }

  void save(ResumeState& state) const override {
    for (const auto& [key, gathered] : gathered_) state.numbers[count_name(key)] = static_cast<double>(gathered.count);
  }
  void restore(const ResumeState& state) override {
    gathered_.clear();
    for (const auto& [key, count] : state.index_update_count)
      if (const auto found = state.numbers.find(count_name(key)); found != state.numbers.end())
        gathered_[key].count = static_cast<int64_t>(found->second);
  }

 private:
  static std::string count_name(const ParamKey& key) { return number_of_parameter("gathered", key); }

  struct Gathered {
    NDArray sum;  // none: restarts
    int64_t count = 0;
  };

  Gathered& gather(const ParamKey& key, const NDArray& grad) {
    const auto [slot, is_new] = gathered_.try_emplace(key);
    Gathered& gathered = slot->second;
    if (is_new) gathered.count = own_.begin_epoch * own_.updates_per_epoch;
    ++gathered.count;
    if (gathered.sum)
      gathered.sum += grad;
    else
      gathered.sum = grad.copy();
    return gathered;
  }

  double warm_up(int64_t updates) const {
    const auto length = static_cast<double>(own_.warmup_epochs * own_.updates_per_epoch),
               now = static_cast<double>(updates);
    const auto most = static_cast<double>(own_.batch_scale);
    if (now >= length) return most;
    if (length <= 1) return 1;
    if (own_.warmup_strategy == "linear") return 1 + (most - 1) * now / length;
    if (own_.warmup_strategy == "power2") return 1 + (most - 1) * (now * now) / (length * length);
    if (own_.warmup_strategy == "sqrt") return 1 + (most - 1) * std::sqrt(now / length);
    return 1;
  }

  static double norm_ratio(const NDArray& weight, const NDArray& grad, double decay) {
    const auto squares = invoke(multi_sum_sq, {weight, grad}, {.num_arrays = 2})[0].to_vector<double>();
    return std::clamp(std::sqrt(squares[0] / (squares[1] + decay * squares[0] + 1e-18)), 0.01, 100.0);
  }

  std::map<ParamKey, Gathered> gathered_;
};

}  // namespace

UpdateRulePtr make_lbsgd() { return std::make_unique<Lbsgd>(); }

}  // namespace symbind
