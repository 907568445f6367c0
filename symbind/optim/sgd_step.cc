#include "symbind/optim/sgd_step.h"

#include <map>
#include <tuple>

#include "symbind/exec/invoke.h"
#include "symbind/ops/multi_optimizer.h"
#include "symbind/ops/optimizer.h"
#include "symbind/passes/target.h"

namespace symbind {
namespace {

using Step = UpdateRule::Step;
using StepOptions = UpdateRule::StepOptions;

struct Form {
  NDArray momentum, copy;  // either may be absent
};

Form form_of(const StateTree& state) {
  if (!state.is_tuple) return {state.array, {}};
  require(state.tuple.size() == 2 && state.tuple[1].array && !state.tuple[0].is_tuple,
          "the state of a 16-bit weight must be its momentum and its float32 copy");
  return {state.tuple[0].array, state.tuple[1].array};
}

void run_one(const Step& step, double momentum, const StepOptions& options) {
  const Form form = form_of(*step.state);
  const InvokeOptions into{.out = {step.weight}};
  if (form.momentum) {
    const SgdMomUpdate params{.lr = step.lr,
                              .momentum = momentum,
                              .wd = step.wd,
                              .rescale_grad = options.rescale_grad,
                              .clip_gradient = options.clip_argument()};
    if (form.copy)
      invoke(mp_sgd_mom_update, {step.weight, step.grad, form.momentum, form.copy}, {params}, into);
    else
      invoke(sgd_mom_update, {step.weight, step.grad, form.momentum}, params, into);
  } else {
    const SgdUpdate params{
        .lr = step.lr, .wd = step.wd, .rescale_grad = options.rescale_grad, .clip_gradient = options.clip_argument()};
    if (form.copy)
      invoke(mp_sgd_update, {step.weight, step.grad, form.copy}, {params}, into);
    else
      invoke(sgd_update, {step.weight, step.grad}, params, into);
  }
}

// Steps that one operator can do together.
struct Group {
  std::vector<const Step*> steps;
  std::vector<NDArray> inputs, weights;
  std::vector<double> lrs, wds;
};

void add(Group& group, const Step& step, const Form& form) {
  group.steps.push_back(&step);
  group.weights.push_back(step.weight);
  for (const NDArray& input : {step.weight, step.grad, form.momentum, form.copy})
    if (input) group.inputs.push_back(input);
  group.lrs.push_back(step.lr);
  group.wds.push_back(step.wd);
}

void run_group(const Group& group, bool has_momentum, bool has_copy, double momentum, const StepOptions& options) {
  const InvokeOptions into{.out = group.weights};
  const auto count = static_cast<int64_t>(group.weights.size());
  if (has_momentum) {
    const MultiSgdMomUpdate params{.lrs = group.lrs,
                                   .wds = group.wds,
                                   .momentum = momentum,
                                   .rescale_grad = options.rescale_grad,
                                   .clip_gradient = options.clip_argument(),
                                   .num_weights = count};
    if (has_copy)
      invoke(multi_mp_sgd_mom_update, group.inputs, {params}, into);
    else
      invoke(multi_sgd_mom_update, group.inputs, params, into);
  } else {
    const MultiSgdUpdate params{.lrs = group.lrs,
                                .wds = group.wds,
                                .rescale_grad = options.rescale_grad,
                                .clip_gradient = options.clip_argument(),
                                .num_weights = count};
    if (has_copy)
      invoke(multi_mp_sgd_update, group.inputs, {params}, into);
    else
      invoke(multi_sgd_update, group.inputs, params, into);
  }
}

// On a device that would run the joint operator on the host, separate operators are faster.
bool has_joint_kernels(Context context) { return runs_on_device(op_of<MultiSgdMomUpdate>(), context); }

}  // namespace

StateTree sgd_state(const NDArray& weight, bool momentum) {
  return momentum ? StateTree(zeros(weight.shape(), weight.context(), weight.dtype())) : StateTree();
}

StateTree sgd_state_with_copy(const NDArray& weight, bool momentum) {
  const NDArray copy = weight.astype(DType::float32);
  return StateTree::of({sgd_state(copy, momentum), copy});
}

void run_sgd(std::span<const UpdateRule::Step> steps, double momentum, const UpdateRule::StepOptions& options) {
  if (steps.size() == 1) return run_one(steps[0], momentum, options);
  std::map<std::tuple<Context, DType, bool, bool>, Group> groups;
  for (const Step& step : steps) {
    const Form form = form_of(*step.state);
    add(groups[{step.weight.context(), step.weight.dtype(), bool(form.momentum), bool(form.copy)}], step, form);
  }
  for (const auto& [kind, group] : groups) {
    const auto& [context, dtype, has_momentum, has_copy] = kind;
    if (has_joint_kernels(context))
      run_group(group, has_momentum, has_copy, momentum, options);
    else
      for (const Step* step : group.steps) run_one(*step, momentum, options);
  }
}

}  // namespace symbind
