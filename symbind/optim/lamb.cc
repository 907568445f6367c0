// Adam's direction, gone along as far as the weight is large: two phases with the norms in between.
#include "symbind/exec/invoke.h"
#include "symbind/ops/adaptive_optimizer.h"
#include "symbind/ops/elementwise.h"
#include "symbind/ops/multi_optimizer.h"
#include "symbind/optim/arguments.h"

namespace symbind {
namespace {

class Lamb final : public OptimizerWith<optim::Lamb> {
 public:
  using OptimizerWith::OptimizerWith;
  StateTree create_state(const ParamKey&, const NDArray& weight) override {
    const auto blank = [&] { return zeros(weight.shape(), weight.context(), weight.dtype()); };
    return StateTree::of({blank(), blank()});
  }

  void update(const Update& one) override {
    const LambUpdatePhase1 direction_params = count_and_prepare(one.key);
    const NDArray direction =
        invoke(lamb_update_phase1, {one.weight, one.grad, one.state->tuple.at(0).array, one.state->tuple.at(1).array},
               direction_params)[0];
    const auto [r1, r2] = norms(one.weight, direction);
    invoke(lamb_update_phase2, {one.weight, direction, r1.astype(one.weight.dtype()), r2.astype(one.weight.dtype())},
           step_params(one.key), {.out = {one.weight}});
  }

  void update_multi_precision(const Update& one) override {
    if (!uses_master(one.weight)) return update(one);
    require(one.state->is_tuple && one.state->tuple.size() == 2 && one.state->tuple[1].tuple.size() == 2,
            "[lamb] the state of ", name_of(one.key),
            " has no float32 copy of the weight, which multi_precision needs");
    const NDArray& master = one.state->tuple[0].array;
    const std::vector<StateTree>& means = one.state->tuple[1].tuple;
    const LambUpdatePhase1 direction_params = count_and_prepare(one.key);
    const NDArray direction = invoke(
        mp_lamb_update_phase1, {one.weight, one.grad, means[0].array, means[1].array, master}, {direction_params})[0];
    const auto [r1, r2] = norms(master, direction);
    invoke(mp_lamb_update_phase2, {one.weight, direction, r1, r2, master}, {step_params(one.key)},
           {.out = {one.weight}});
  }

 private:
  LambUpdatePhase1 count_and_prepare(const ParamKey& key) {
    update_count(key);
    return {.beta1 = own_.beta1,
            .beta2 = own_.beta2,
            .epsilon = own_.epsilon,
            .t = count_of(key),
            .bias_correction = own_.bias_correction,
            .wd = wd_of(key),
            .rescale_grad = rescale_grad,
            .clip_gradient = clip_argument()};
  }
  LambUpdatePhase2 step_params(const ParamKey& key) const {
    return {.lr = lr_of(key), .lower_bound = bound(own_.lower_bound), .upper_bound = bound(own_.upper_bound)};
  }
  static double bound(const std::optional<double>& value) { return value && *value != 0 ? *value : -1; }

  static std::pair<NDArray, NDArray> norms(const NDArray& weight, const NDArray& direction) {
    const NDArray both = sqrt(invoke(multi_sum_sq, {weight, direction}, {.num_arrays = 2})[0]);
    return {both.slice(0, 1), both.slice(1, 2)};
  }
};

}  // namespace

OptimizerPtr make_lamb(const OptimizerParams& params) { return std::make_shared<Lamb>(params); }

}  // namespace symbind
