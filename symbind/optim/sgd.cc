// Stochastic gradient descent, optionally with momentum: many arrays in one pass.
#include "symbind/optim/rules.h"
#include "symbind/optim/sgd_step.h"

namespace symbind {
namespace {

class Sgd final : public RuleWith<optim::Sgd> {
 public:
  UpdateUnit update_unit() const override { return UpdateUnit::element; }
  StateTree create_state(const std::string&, const NDArray& weight) const override {
    return sgd_state(weight, own_.momentum != 0);
  }
  bool writes_copy() const override { return true; }
  StateTree create_state_with_copy(const std::string&, const NDArray& weight) const override {
    return sgd_state_with_copy(weight, own_.momentum != 0);
  }

  void update(const Step& step, const StepOptions& options) override { update_many({&step, 1}, options); }
  bool joint() const override { return true; }
  void update_many(std::span<const Step> steps, const StepOptions& options) override {
    run_sgd(steps, own_.momentum, options);
  }
};

}  // namespace

UpdateRulePtr make_sgd() { return std::make_unique<Sgd>(); }

}  // namespace symbind
