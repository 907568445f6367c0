#include "symbind/train/scaled_loss.h"

#include <algorithm>
#include <utility>

#include "symbind/core/error.h"
#include "symbind/exec/invoke.h"
#include "symbind/kvstore/agreement.h"
#include "symbind/ops/finite.h"

namespace symbind {
namespace {

constexpr const char* scale_name = "_loss_scale";
constexpr const char* inverse_scale_name = "_inverse_loss_scale";

}  // namespace

Symbol ScaledLoss::network(const Symbol& computed, const std::vector<std::string>& arguments) {
  return with_scaled_loss(computed, arguments, scale_name, inverse_scale_name);
}

void ScaledLoss::check_store(const KVStore& store) {
  require(store.num_workers() == 1 || dynamic_cast<const Agreement*>(&store), "[init_optimizer] the workers of ",
          store.type(), " cannot agree on the scale of a loss: use compute_dtype bfloat16, which needs none");
}

void ScaledLoss::write(const DataParallelExecutorGroup& group) {
  const auto& execs = group.execs();
  written_.resize(execs.size());
  for (size_t i = 0; i < execs.size(); ++i) {
    const std::pair<const Executor*, double> wanted{execs[i].get(), scale()};
    if (written_[i] == wanted) continue;
    const NamedArrays& arrays = execs[i]->arg_dict();
    arrays.at(scale_name).fill(wanted.second);
    arrays.at(inverse_scale_name).fill(1 / wanted.second);
    written_[i] = wanted;
  }
}

void ScaledLoss::start_check(const DataParallelExecutorGroup& group) {
  checks_.clear();
  for (size_t device = 0; device < group.execs().size(); ++device) {
    std::vector<NDArray> grads;
    for (const auto& of_devices : group.grad_arrays())
      if (of_devices[device]) grads.push_back(of_devices[device]);
    if (grads.empty()) continue;
    checks_.emplace_back(multi_all_finite(grads, {.num_arrays = static_cast<int64_t>(grads.size())}));
  }
}

bool ScaledLoss::finish_step(const DataParallelExecutorGroup& group, KVStore* store) {
  if (checks_.empty()) start_check(group);
  const std::vector<ArrivingArray> checks = std::exchange(checks_, {});
  bool finite = std::ranges::all_of(checks, [](const ArrivingArray& check) { return check.get().item() != 0; });
  if (auto* const workers = dynamic_cast<Agreement*>(store)) finite = workers->all_agree("the overflow check", finite);
  scale_->finish_step(finite);
  return finite;
}

}  // namespace symbind
