// A rule that is easy to verify by hand: the gradient is added to the weight, and the state is the weight.
#include "symbind/exec/arithmetic.h"
#include "symbind/optim/rules.h"

namespace symbind {
namespace {

class Test final : public UpdateRule {
 public:
  UpdateUnit update_unit() const override { return UpdateUnit::element; }
  std::string name() const override { return "test"; }
  Counting counting() const override { return Counting::never; }
  StateTree create_state(const std::string&, const NDArray& weight) const override {
    return zeros(weight.shape(), weight.context());
  }
  void update(const Step& step, const StepOptions& options) override {
    NDArray weight = step.weight;
    weight += step.grad * options.rescale_grad;
    weight.copyto(step.state->array);
  }
};

}  // namespace

UpdateRulePtr make_test() { return std::make_unique<Test>(); }

}  // namespace symbind
