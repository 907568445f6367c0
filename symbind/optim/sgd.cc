// Stochastic gradient descent, optionally with momentum: many arrays in one pass.
#include "symbind/optim/rules.h"
#include "symbind/optim/sgd_step.h"

namespace symbind {
namespace {

class Sgd final : public MomentumRule<optim::Sgd> {
 public:
  UpdateUnit update_unit() const override { return UpdateUnit::element; }
  bool is_one_operator() const override { return true; }
  Repeats repeats() const override { return Repeats::without_count; }
  void update(const Step& step, const StepOptions& options) override { update_many({&step, 1}, options); }
  bool joint() const override { return true; }
  void update_many(std::span<const Step> steps, const StepOptions& options) override {
    run_sgd(steps, own_.momentum, options);
  }
};

}  // namespace

UpdateRulePtr make_sgd() { return std::make_unique<Sgd>(); }

}  // namespace symbind
