// An optimizer that is easy to reckon with: the gradient is added to the weight, and the state is the weight.
#include "symbind/exec/arithmetic.h"
#include "symbind/optim/arguments.h"

namespace symbind {
namespace {

class Test final : public Optimizer {
 public:
  explicit Test(const OptimizerParams& params) : Optimizer(params) {
    OptimizerArguments(*this, params).common().finish();
  }
  std::string name() const override { return "test"; }
  StateTree create_state(const ParamKey&, const NDArray& weight) override {
    return zeros(weight.shape(), weight.context());
  }
  void update(const Update& one) override {
    NDArray weight = one.weight;
    weight += one.grad * rescale_grad;
    weight.copyto(one.state->array);
  }
};

}  // namespace

OptimizerPtr make_test(const OptimizerParams& params) { return std::make_shared<Test>(params); }

}  // namespace symbind
