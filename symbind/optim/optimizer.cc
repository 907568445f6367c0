#include "symbind/optim/optimizer.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "symbind/core/error_kinds.h"
#include "symbind/core/log.h"
#include "symbind/core/named_factories.h"
#include "symbind/files/states.h"
#include "symbind/graph/param.h"
#include "symbind/ops/floating.h"
#include "symbind/optim/arguments.h"
#include "symbind/optim/rule_optimizer.h"

namespace symbind {
namespace {

NamedFactories<OptimizerFactory>& factories() {
  static NamedFactories<OptimizerFactory> all("optimizer", [](auto& built_in) {
    for (const std::string& rule : list_update_rules())
      built_in.add(rule, [rule](const OptimizerParams& params) {
        return std::make_shared<RuleOptimizer>(make_update_rule(rule), params);
      });
  });
  return all;
}

}  // namespace

// ---- creation -------------------------------------------------------------------------------------------------------

OptimizerPtr Optimizer::create(const std::string& name, const OptimizerParams& params) {
  return factories().find(lower_case(name))(params);
}

void register_optimizer(const std::string& name, OptimizerFactory factory) {
  require(factory != nullptr, "the optimizer ", name, " needs a function that makes it");
  const std::string lower = lower_case(name);
  if (!factories().add(lower, std::move(factory)))
    log_warning("the optimizer ", lower, " is registered again and replaces the previous one");
}

std::vector<std::string> list_optimizers() { return factories().names(); }

Optimizer::Optimizer(const OptimizerParams& params) {
  optim::Common given;
  OptimizerArguments arguments("optimizer", params);
  optim::visit_common(given, [&](const char* argument, auto& value) { arguments.take(argument, value); });
  rescale_grad = given.rescale_grad.value_or(rescale_grad);
  wd = given.wd;
  clip_gradient = given.clip_gradient;
  clip_global_norm = given.clip_global_norm;
  lr_scheduler = given.lr_scheduler;
  multi_precision = given.multi_precision;
  num_update_ = begin_num_update_ = given.begin_num_update;
  const std::optional<double>& rate = given.learning_rate;
  if (rate) require_finite_rate("optimizer", "learning_rate", *rate);
  require(!clip_global_norm || *clip_global_norm > 0,
          "[optimizer] clip_global_norm must be positive: ", clip_global_norm.value_or(0));
  if (lr_scheduler) {
    if (rate) {
      const std::optional<double> fixed = lr_scheduler->fixed_lr();
      const double own = fixed.value_or(lr_scheduler->base_lr());
      // A schedule at its default rate was given none, which is the usual case, so there is nothing to warn about.
      if (*rate != own && fixed)
        log_warning("the optimizer's learning_rate, ", *rate,
                    ", does not change the schedule, whose curve begins at its own base_lr, ", own);
      else if (*rate != own && own != LRScheduler::default_base_lr)
        log_warning("the learning rate of the schedule, ", own, ", is replaced by the optimizer's, ", *rate);
      lr_scheduler->set_base_lr(*rate);
    }
    lr_ = lr_scheduler->base_lr();
  } else {
    lr_ = rate.value_or(lr_);
  }
}

// ---- rates, decays, counts ------------------------------------------------------------------------------------------

double Optimizer::learning_rate() const {
  if (!lr_scheduler) return lr_;
  settle();
  const double rate = (*lr_scheduler)(num_update_);
  require(std::isfinite(rate), "[", name(), "] the schedule's learning rate for update ", num_update_,
          " must be finite: ", rate);
  return rate;
}

void Optimizer::set_learning_rate(double lr) {
  if (!lr_scheduler) return set_own_lr(lr);
  log_warning("[", name(), "] set_learning_rate(", lr,
              ") has no effect: a schedule decides; set the schedule's base_lr, or leave lr_scheduler out");
}

void Optimizer::set_own_lr(double lr) {
  require_finite_rate(name().c_str(), "the learning rate", lr);
  lr_ = lr;
}

void Optimizer::set_lr_mult(const std::map<ParamKey, double>& mult) { lr_mult_ = mult; }
void Optimizer::set_wd_mult(const std::map<ParamKey, double>& mult) { wd_mult_ = mult; }

void Optimizer::set_names(std::map<int64_t, std::string> idx2name, std::map<std::string, Attributes> attributes) {
  idx2name_ = std::move(idx2name);
  attributes_ = std::move(attributes);
}

std::string Optimizer::name_of(const ParamKey& key) const {
  if (!key.is_number()) return key.name();
  const auto found = idx2name_.find(key.number());
  return found == idx2name_.end() ? key.str() : found->second;
}

// The multiplier set for the key, else for its name, else by the network's attributes.
std::optional<double> Optimizer::multiplier(const ParamKey& key, const std::string& parameter,
                                            const std::map<ParamKey, double>& set, const std::string& attribute) const {
  if (const auto found = set.find(key); found != set.end()) return found->second;
  if (const auto found = set.find(parameter); found != set.end()) return found->second;
  const auto attributes = attributes_.find(parameter);
  if (attributes == attributes_.end()) return std::nullopt;
  const auto found = attributes->second.find(attribute);
  if (found == attributes->second.end() || found->second == "None") return std::nullopt;
  double value = 1;
  try {
    parse(found->second, value);
  } catch (const Error&) {
    fail("[", name(), "] the attribute ", attribute, " of ", parameter, " must be a number: ", found->second);
  }
  return value;
}

double Optimizer::lr_mult_of(const ParamKey& key, const std::string& parameter) const {
  const double mult = multiplier(key, parameter, lr_mult_, "__lr_mult__").value_or(1);
  require(std::isfinite(mult), "[", name(), "] the learning rate's multiplier of ", parameter,
          " must be finite: ", mult);
  return mult;
}

double Optimizer::lr_of(const ParamKey& key) const {
  const InUse use = in_use("update");
  const double mult = lr_mult_of(key, name_of(key));
  return learning_rate() * mult;
}

double Optimizer::wd_of(const ParamKey& key) const {
  const InUse use = in_use("update");
  return wd_of(key, name_of(key));
}

double Optimizer::wd_of(const ParamKey& key, const std::string& parameter) const {
  if (const auto set = multiplier(key, parameter, wd_mult_, "__wd_mult__")) return wd * *set;
  const bool is_named = key.is_number() ? idx2name_.contains(key.number())
                                        : std::any_of(idx2name_.begin(), idx2name_.end(),
                                                      [&](const auto& entry) { return entry.second == parameter; });
  return is_named && !decays(parameter) ? 0 : wd;
}

void Optimizer::update_count(const ParamKey& key) {
  const InUse use = in_use("update");
  settle();
  const auto [count, is_new] = index_update_count_.try_emplace(key, begin_num_update_);
  num_update_ = std::max(num_update_, ++count->second);
}

UpdateUnit Optimizer::update_unit() const { return clip_global_norm ? UpdateUnit::sequence : own_update_unit(); }

int64_t Optimizer::count_of(const ParamKey& key) const {
  const InUse use = in_use("update");
  settle();
  const auto found = index_update_count_.find(key);
  return found == index_update_count_.end() ? begin_num_update_ : found->second;
}

// ---- arguments of one kind alone ------------------------------------------------------------------------------------

void Optimizer::fail_no_argument(const std::string& argument) const {
  throw UnknownArgumentError(
      join("[", name(), "] has no argument ", argument, "; its own arguments are ", comma_separated(argument_names())));
}

OptimizerValue Optimizer::argument(const std::string& argument) const { fail_no_argument(argument); }
void Optimizer::set_argument(const std::string& argument, const OptimizerValue&) { fail_no_argument(argument); }

// ---- updates --------------------------------------------------------------------------------------------------------

void Optimizer::update_many(std::span<const Update> updates) {
  for (const Update& each : updates) update_multi_precision(each);
}

FollowingWorkPtr Optimizer::repeated_update(std::span<const Update> /*updates*/, const FollowingWorkPtr& /*last*/,
                                            const NDArray& /*condition*/) {
  fail("[", name(), "] does not repeat its updates");
}

bool Optimizer::uses_master(const NDArray& weight) const { return multi_precision && is_half(weight.dtype()); }

StateTree Optimizer::create_state_multi_precision(const ParamKey& key, const NDArray& weight) {
  if (uses_master(weight)) {
    const NDArray master = weight.astype(DType::float32);
    return StateTree::of({master, create_state(key, master)});
  }
  if (is_half(weight.dtype()))
    log_warning("[", name(), "] parameter ", name_of(key), " is ", weight.dtype(),
                ": small steps are lost in it; multi_precision = True keeps a float32 copy");
  return create_state(key, weight);
}

void Optimizer::update_multi_precision(const Update& each) {
  if (!uses_master(each.weight)) return update(each);
  require(each.state->is_tuple && each.state->tuple.size() == 2 && each.state->tuple[0].array, "[", name(),
          "] the state of ", name_of(each.key), " has no float32 copy of the weight, which multi_precision needs");
  const NDArray& master = each.state->tuple[0].array;
  update({each.key, master, each.grad.astype(DType::float32), &each.state->tuple[1]});
  master.copyto(each.weight);
}

// ---- resuming -------------------------------------------------------------------------------------------------------

namespace {

// A run that is resumed with another schedule uses that one: it then starts from the count of updates alone.
bool same_schedule(const std::map<std::string, double>& now, const std::map<std::string, double>& saved) {
  const auto same_name = [](const auto& a, const auto& b) { return a.first == b.first; };
  return std::equal(now.begin(), now.end(), saved.begin(), saved.end(), same_name) &&
         now.at("first_lr") == saved.at("first_lr");
}

}  // namespace

ResumeState Optimizer::resume_state() const {
  settle();
  ResumeState state;
  state.num_update = num_update_;
  state.begin_num_update = begin_num_update_;
  state.index_update_count = index_update_count_;
  state.numbers[std::string(resumed_optimizer) + name()] = 1;
  if (lr_scheduler)
    for (const auto& [part, value] : lr_scheduler->state()) state.numbers[std::string(resumed_schedule) + part] = value;
  return state;
}

void Optimizer::restore(const ResumeState& state) {
  settle();
  std::map<std::string, double> schedule;
  for (const auto& [part, value] : state.numbers) {
    if (part.starts_with(resumed_schedule)) schedule[part.substr(resumed_schedule.size())] = value;
  }
  if (lr_scheduler && same_schedule(lr_scheduler->state(), schedule)) lr_scheduler->restore(schedule);
  num_update_ = state.num_update;
  begin_num_update_ = state.begin_num_update;
  index_update_count_ = state.index_update_count;
}

// ---- updates that a device may leave out ----------------------------------------------------------------------------

struct Optimizer::Unsettled {
  std::function<bool()> made;
  ResumeState before;
  LRSchedulerPtr schedule;
  std::map<std::string, double> schedule_after;  // its state after the updates
};

void Optimizer::count_if(std::function<bool()> made, ResumeState before) {
  settle();
  unsettled_ =
      std::make_shared<Unsettled>(Unsettled{std::move(made), std::move(before), lr_scheduler,
                                            lr_scheduler ? lr_scheduler->state() : std::map<std::string, double>()});
}

void Optimizer::settle() const {
  if (!unsettled_) return;
  const std::shared_ptr<const Unsettled> last = unsettled_;
  const bool made = last->made();  // may throw a fault of the device: the next call asks again
  unsettled_ = nullptr;
  if (made) return;
  ResumeState before = last->before;
  // A schedule that the user has changed or replaced since then stays.
  if (lr_scheduler && (lr_scheduler != last->schedule || lr_scheduler->state() != last->schedule_after))
    std::erase_if(before.numbers, [](const auto& number) { return number.first.starts_with(resumed_schedule); });
  const_cast<Optimizer*>(this)->restore(before);  // the updates were made through a pointer that is not const
}

}  // namespace symbind
