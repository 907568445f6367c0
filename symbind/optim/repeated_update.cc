#include "symbind/optim/repeated_update.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "symbind/core/update_condition.h"

namespace symbind {
namespace {

bool same_arrays(const StateTree& a, const StateTree& b) {
  return a.is_tuple == b.is_tuple && a.array.same_memory(b.array) &&
         std::equal(a.tuple.begin(), a.tuple.end(), b.tuple.begin(), b.tuple.end(), same_arrays);
}

void mark(const StateTree& tree) {
  if (tree.array) tree.array.storage().bump();
  for (const StateTree& part : tree.tuple) mark(part);
}

}  // namespace

RepeatedUpdate::RepeatedUpdate(UpdateRule& rule, std::vector<UpdateRule::Step> steps,
                               const UpdateRule::StepOptions& options, uint64_t arguments_version,
                               const NDArray& condition)
    : rule_(rule),
      steps_(std::move(steps)),
      options_(options),
      arguments_version_(arguments_version),
      condition_(condition) {
  states_.reserve(steps_.size());
  for (UpdateRule::Step& step : steps_) step.state = &states_.emplace_back(*step.state);
}

void RepeatedUpdate::queue() const {
  std::optional<UpdateCondition> condition;
  if (condition_) condition.emplace(static_cast<const float*>(condition_.data()));
  rule_.update_many(steps_, options_);
}

void RepeatedUpdate::mark_written() const {
  for (const UpdateRule::Step& step : steps_) {
    step.weight.storage().bump();
    mark(*step.state);
  }
}

bool RepeatedUpdate::is(const UpdateRule& rule, const std::vector<UpdateRule::Step>& steps,
                        const UpdateRule::StepOptions& options, uint64_t arguments_version,
                        const NDArray& condition) const {
  const bool with_count = rule.repeats() == UpdateRule::Repeats::with_count;
  const auto same_step = [&](const UpdateRule::Step& a, const UpdateRule::Step& b) {
    return (!with_count || a.count == b.count) && a.lr == b.lr && a.wd == b.wd && a.learning_rate == b.learning_rate &&
           a.multi_precision == b.multi_precision && a.weight.same_array(b.weight) && a.grad.same_array(b.grad) &&
           same_arrays(*a.state, *b.state);
  };
  return &rule == &rule_ && arguments_version == arguments_version_ && options == options_ &&
         condition.same_memory(condition_) &&
         std::equal(steps.begin(), steps.end(), steps_.begin(), steps_.end(), same_step);
}

}  // namespace symbind
