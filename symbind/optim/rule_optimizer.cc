#include "symbind/optim/rule_optimizer.h"

#include <algorithm>
#include <atomic>
#include <typeinfo>

#include "symbind/core/error.h"
#include "symbind/files/states.h"
#include "symbind/optim/arguments.h"
#include "symbind/optim/repeated_update.h"

namespace symbind {
namespace {

OptimizerParams with_default_rate(OptimizerParams params, const UpdateRule& rule) {
  if (const auto rate = rule.default_learning_rate()) params.try_emplace("learning_rate", *rate);
  return params;
}

}  // namespace

RuleOptimizer::RuleOptimizer(UpdateRulePtr rule, const OptimizerParams& params)
    : Optimizer(with_default_rate(params, *rule)), rule_(std::move(rule)) {
  OptimizerArguments arguments(rule_->name(), params);
  arguments.common();
  for (const UpdateRule::Argument& own : rule_->arguments())
    std::visit([&](auto* field) { arguments.take(own.name, *field); }, own.field);
  arguments.finish();
  rule_->check_arguments();
}

uint64_t RuleOptimizer::new_version() {
  static std::atomic<uint64_t> last{0};
  return ++last;
}

// ---- arguments of the rule ------------------------------------------------------------------------------------------

std::vector<std::string> RuleOptimizer::argument_names() const {
  std::vector<std::string> names;
  for (const UpdateRule::Argument& own : rule_->arguments()) names.push_back(own.name);
  std::sort(names.begin(), names.end());
  return names;
}

UpdateRule::Argument RuleOptimizer::find(const std::string& argument) const {
  for (UpdateRule::Argument& own : rule_->arguments())
    if (own.name == argument) return std::move(own);
  fail_no_argument(argument);
}

OptimizerValue RuleOptimizer::argument(const std::string& argument) const {
  return std::visit(
      []<class T>(const T* field) -> OptimizerValue {
        if constexpr (std::is_same_v<T, std::optional<double>>)
          return *field ? OptimizerValue(**field) : OptimizerValue("None");
        else
          return *field;
      },
      find(argument).field);
}

void RuleOptimizer::set_argument(const std::string& argument, const OptimizerValue& value) {
  const OptimizerParams given{{argument, value}};
  std::visit([&](auto* field) { OptimizerArguments(name(), given).take(argument, *field); }, find(argument).field);
  arguments_version_ = new_version();
}

// ---- updates --------------------------------------------------------------------------------------------------------

UpdateRule::Step RuleOptimizer::step_of(const Update& update) const {
  UpdateRule::Step step{update, name_of(update.key)};
  const UpdateRule::Counting counting = rule_->counting();
  if (counting == UpdateRule::Counting::never) return step;
  step.wd = step_wd(update.key, step.name);
  if (counting == UpdateRule::Counting::without_rate) return step;
  step.learning_rate = learning_rate();
  step.lr = step_lr(update.key, step.name, step.learning_rate);
  return step;
}

std::vector<UpdateRule::Step> RuleOptimizer::steps_of(std::span<const Update> updates, bool copies) const {
  std::vector<UpdateRule::Step> steps;
  steps.reserve(updates.size());
  for (const Update& each : updates) {
    steps.push_back(step_of(each));
    steps.back().multi_precision = copies && uses_master(each.weight);
  }
  return steps;
}

void RuleOptimizer::count(std::span<const Update> updates, bool copies, std::vector<UpdateRule::Step>& steps) {
  const UpdateRule::Counting counting = rule_->counting();
  if (counting == UpdateRule::Counting::before_rate || counting == UpdateRule::Counting::without_rate)
    for (const Update& each : updates) update_count(each.key);
  for (UpdateRule::Step& step : steps_of(updates, copies)) {
    if (counting == UpdateRule::Counting::after_rate) update_count(step.key);
    step.count = count_of(step.key);
    steps.push_back(std::move(step));
  }
}

void RuleOptimizer::apply(std::span<const Update> updates, bool copies) {
  const InUse use = in_use("update");
  std::vector<UpdateRule::Step> steps;
  steps.reserve(updates.size());
  count(updates, copies, steps);
  rule_->update_many(steps, step_options());
}

StateTree RuleOptimizer::create_state(const ParamKey& key, const NDArray& weight) {
  return rule_->create_state(name_of(key), weight);
}

bool RuleOptimizer::updates_by_rule() const { return typeid(*this) == typeid(RuleOptimizer); }

UpdateUnit RuleOptimizer::own_update_unit() const {
  return updates_by_rule() ? rule_->update_unit() : std::max(rule_->update_unit(), UpdateUnit::parameter);
}

StateTree RuleOptimizer::create_state_multi_precision(const ParamKey& key, const NDArray& weight) {
  if (updates_by_rule() && uses_master(weight) && rule_->writes_copy())
    return rule_->create_state_with_copy(name_of(key), weight);
  return Optimizer::create_state_multi_precision(key, weight);
}

void RuleOptimizer::update(const Update& update) { apply({&update, 1}, false); }

void RuleOptimizer::update_multi_precision(const Update& update) {
  if (!updates_by_rule() || (uses_master(update.weight) && !rule_->writes_copy()))
    return Optimizer::update_multi_precision(update);
  apply({&update, 1}, true);
}

void RuleOptimizer::update_many(std::span<const Update> updates) {
  if (!updates_by_rule() || !rule_->joint() || (multi_precision && !rule_->writes_copy()))
    return Optimizer::update_many(updates);
  apply(updates, true);
}

// Not with a global norm, which the host reads, and not where a float32 copy is written to the weight separately.
bool RuleOptimizer::is_conditional() const {
  return own_update_unit() == UpdateUnit::element && rule_->is_one_operator() && !clip_global_norm &&
         (!multi_precision || rule_->writes_copy());
}

bool RuleOptimizer::repeats_updates() const { return is_conditional() && rule_->repeats() != UpdateRule::Repeats::no; }

bool RuleOptimizer::update_depends_on_count() const {
  return lr_scheduler || rule_->repeats() != UpdateRule::Repeats::without_count;
}

FollowingWorkPtr RuleOptimizer::repeated_update(std::span<const Update> updates, const FollowingWorkPtr& last,
                                                const NDArray& condition) {
  if (!repeats_updates()) return Optimizer::repeated_update(updates, last, condition);
  require(!condition || !update_depends_on_count(), "[", name(),
          "] updates that depend on their count cannot be left out by a device");
  const InUse use = in_use("update");
  std::vector<UpdateRule::Step> steps;
  if (condition)
    steps = steps_of(updates, true);
  else if (rule_->joint())  // in the order of update_many()
    count(updates, true, steps);
  else
    for (const Update& each : updates) count({&each, 1}, true, steps);
  const auto* const same = dynamic_cast<const RepeatedUpdate*>(last.get());
  if (same && same->is(*rule_, steps, step_options(), arguments_version_, condition)) return last;
  return std::make_shared<RepeatedUpdate>(*rule_, std::move(steps), step_options(), arguments_version_, condition);
}

// ---- resuming -------------------------------------------------------------------------------------------------------

ResumeState RuleOptimizer::resume_state() const {
  ResumeState state = Optimizer::resume_state();
  rule_->save(state);
  return state;
}

void RuleOptimizer::restore(const ResumeState& state) {
  Optimizer::restore(state);
  rule_->restore(state);
}

}  // namespace symbind
