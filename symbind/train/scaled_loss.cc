#include "symbind/train/scaled_loss.h"

#include <algorithm>
#include <map>
#include <utility>

#include "symbind/core/error.h"
#include "symbind/core/log.h"
#include "symbind/exec/invoke.h"
#include "symbind/kvstore/agreement.h"
#include "symbind/kvstore/early_push.h"
#include "symbind/ops/finite.h"
#include "symbind/ops/loss_scale.h"

namespace symbind {
namespace {

constexpr const char* scale_name = "_loss_scale";
constexpr const char* inverse_scale_name = "_inverse_loss_scale";

std::vector<NDArray> gradients_of(const DataParallelExecutorGroup& group, size_t device) {
  std::vector<NDArray> grads;
  for (const auto& of_devices : group.grad_arrays())
    if (of_devices[device]) grads.push_back(of_devices[device]);
  return grads;
}

// 1 if all elements are finite.
NDArray check_finite(const std::vector<NDArray>& grads, const InvokeOptions& options = {}) {
  return invoke(multi_all_finite, grads, {.num_arrays = static_cast<int64_t>(grads.size())}, options)[0];
}

bool is_finite(const ArrivingArray& check) { return check.get().item() != 0; }

}  // namespace

Symbol ScaledLoss::network(const Symbol& computed, const std::vector<std::string>& arguments) {
  return with_scaled_loss(computed, arguments, scale_name, inverse_scale_name);
}

void ScaledLoss::check_store(const KVStore& store) {
  require(store.num_workers() == 1 || dynamic_cast<const Agreement*>(&store), "[init_optimizer] the workers of ",
          store.type(), " cannot agree on the scale of a loss: use compute_dtype bfloat16, which needs none");
}

bool ScaledLoss::checks_sums(const KVStore* store) {
  const auto* const early = dynamic_cast<const EarlyPush*>(store);
  return early && early->returns_sums();
}

// ---- The scale ------------------------------------------------------------------------------------------------------

const LossScale& ScaledLoss::Shared::on_host() {
  if (check_) {
    const bool finite = is_finite(*check_);  // may throw a fault of the device: the next call asks again
    check_ = nullptr;
    scale_ = adapted(finite);
  }
  return scale_;
}

// The scale after a step. Warns once if it cannot become smaller: then nothing is learned.
LossScale ScaledLoss::Shared::adapted(bool finite) {
  LossScale scale = scale_;
  scale.finish_step(finite);
  if (!finite && !warned_ && scale_.value() <= LossScale::least) {
    warned_ = true;
    log_warning("gradients are NaN or overflow float16 although the loss is scaled by ", LossScale::least,
                " only, and such steps are left out: give smaller data and labels, or use compute_dtype bfloat16");
  }
  return scale;
}

void ScaledLoss::Shared::finish_step(bool finite) {
  on_host();
  set(adapted(finite));
}

void ScaledLoss::Shared::set(const LossScale& scale) {
  if (device_.state || scale.value() != scale_.value()) ++version_;
  check_ = nullptr;
  device_ = {};
  scale_ = scale;
}

void ScaledLoss::Shared::follow(std::shared_ptr<const ArrivingArray> check, OnDevice device) {
  on_host();
  check_ = std::move(check);
  device_ = std::move(device);
  ++version_;
}

void ScaledLoss::write(const DataParallelExecutorGroup& group) {
  const auto& execs = group.execs();
  written_.resize(execs.size());
  for (size_t i = 0; i < execs.size(); ++i) {
    const std::pair<const Executor*, uint64_t> wanted{execs[i].get(), shared_->version()};
    if (written_[i] == wanted) continue;
    const NDArray &scale = execs[i]->arg_dict().at(scale_name), &inverse = execs[i]->arg_dict().at(inverse_scale_name);
    if (const OnDevice& newest = shared_->on_device(); !newest.state) {
      scale.fill(shared_->on_host().value());
      inverse.fill(1 / shared_->on_host().value());
    } else if (!scale.same_memory(newest.scale)) {
      newest.scale.copyto(scale);
      newest.inverse.copyto(inverse);
    }
    written_[i] = wanted;
  }
}

// ---- The decision ---------------------------------------------------------------------------------------------------

void ScaledLoss::start_check(const DataParallelExecutorGroup& group) {
  checks_.clear();
  std::map<Context, std::vector<NDArray>> grads;  // with group2ctxs those of one executor are on several
  for (size_t device = 0; device < group.execs().size(); ++device)
    for (const NDArray& grad : gradients_of(group, device)) grads[grad.context()].push_back(grad);
  for (const auto& [context, of_context] : grads) checks_.emplace_back(check_finite(of_context));
}

bool ScaledLoss::finish_step(const DataParallelExecutorGroup& group, KVStore* store) {
  if (checks_.empty()) start_check(group);
  const std::vector<ArrivingArray> checks = std::exchange(checks_, {});
  bool finite = std::ranges::all_of(checks, is_finite);
  if (auto* const workers = dynamic_cast<Agreement*>(store); workers && !checks_sums(store))
    finite = workers->all_agree("the overflow check", finite);
  shared_->finish_step(finite);
  return finite;
}

ScaledLoss::Decision::Decision(std::vector<NDArray> gradients, OnDevice scale)
    : gradients_(std::move(gradients)), scale_(std::move(scale)), is_taken_(Shape{1}, scale_.scale.context()) {}

void ScaledLoss::Decision::queue() const {
  check_finite(gradients_, {.out = {is_taken_}});
  invoke(adapt_loss_scale, {is_taken_, scale_.state}, {}, {.out = {scale_.scale, scale_.inverse}});
}

void ScaledLoss::Decision::mark_written() const {
  for (const NDArray& written : {is_taken_, scale_.state, scale_.scale, scale_.inverse}) written.storage().bump();
}

bool ScaledLoss::Decision::is(const std::vector<NDArray>& gradients, const OnDevice& scale) const {
  const auto same = [](const NDArray& a, const NDArray& b) { return a.same_memory(b); };
  return std::ranges::equal(gradients, gradients_, same) && same(scale.scale, scale_.scale) &&
         same(scale.inverse, scale_.inverse) && same(scale.state, scale_.state);
}

std::shared_ptr<const ScaledLoss::Decision> ScaledLoss::decide(const DataParallelExecutorGroup& group) {
  const NamedArrays& arrays = group.execs()[0]->arg_dict();
  OnDevice device{arrays.at(scale_name), arrays.at(inverse_scale_name), shared_->on_device().state};
  if (!device.state || device.state.context() != device.scale.context()) {
    const LossScale& now = scale();
    device.state = array({now.value(), static_cast<double>(now.good_steps())}, device.scale.context(), DType::float64);
  }
  std::vector<NDArray> gradients = gradients_of(group, 0);
  if (!decision_ || !decision_->is(gradients, device))
    decision_ = std::make_shared<const Decision>(std::move(gradients), std::move(device));
  return decision_;
}

std::function<bool()> ScaledLoss::decided() {
  const auto check = std::make_shared<const ArrivingArray>(decision_->is_taken_);
  shared_->follow(check, decision_->scale_);
  return [check] { return is_finite(*check); };
}

}  // namespace symbind
