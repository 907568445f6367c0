// How parameters change, by key; nothing about networks. An optimizer knows rates, multipliers and counts; the state of
// each parameter belongs to its caller (optim/updater.h), and the arithmetic to an update rule
// (optim/update_rule.h) or to a class derived from this one.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "symbind/core/busy.h"
#include "symbind/core/ndarray.h"
#include "symbind/core/param_key.h"
#include "symbind/core/state_tree.h"
#include "symbind/graph/node.h"
#include "symbind/optim/lr_scheduler.h"
#include "symbind/optim/optimizer_params.h"
#include "symbind/optim/update_rule.h"

namespace SYMBIND_API symbind {

class FollowingWork;  // exec/following_work.h
using FollowingWorkPtr = std::shared_ptr<const FollowingWork>;

// Prefixes of the numbers in a ResumeState: "optimizer:sgd" names the optimizer, "schedule:base_lr" belongs to its
// schedule.
inline constexpr std::string_view resumed_optimizer = "optimizer:", resumed_schedule = "schedule:";

class Optimizer {
 public:
  virtual ~Optimizer() = default;
  // By name in any case ("sgd", "Adam"); an unknown name or argument fails, listing the known ones.
  static std::shared_ptr<Optimizer> create(const std::string& name, const OptimizerParams& params = {});
  // create(optim::Sgd{.learning_rate = 0.1})
  template <optim::Options Given>
  static std::shared_ptr<Optimizer> create(const Given& options) {
    return create(Given::name, params_of(options));
  }

  virtual std::string name() const = 0;  // in lower case

  virtual StateTree create_state(const ParamKey& key, const NDArray& weight) = 0;
  virtual void update(const Update& update) = 0;
  // The same for several parameters; in one pass if the optimizer supports it.
  virtual void update_many(std::span<const Update> updates);
  // With multi_precision and a 16-bit weight: a float32 copy of the weight is part of the state.
  virtual StateTree create_state_multi_precision(const ParamKey& key, const NDArray& weight);
  virtual void update_multi_precision(const Update& update);
  // With clip_global_norm one updater sees all gradients, whatever the arithmetic.
  UpdateUnit update_unit() const;
  // Are updates counted? Those of parameters that another worker updates are counted too, since schedules depend on
  // them.
  virtual bool counts_updates() const { return true; }
  virtual bool draws_random() const { return false; }  // does an update draw random numbers?
  // May a parameter's state have any form? Otherwise states that are loaded must have that of create_state.
  virtual bool any_state() const { return false; }

  double learning_rate() const;
  void set_learning_rate(double lr);  // warns when a schedule decides; rates are finite
  void set_lr_mult(const std::map<ParamKey, double>& mult);
  void set_wd_mult(const std::map<ParamKey, double>& mult);
  // Names of numbered parameters, and attributes (__lr_mult__, __wd_mult__) of named ones.
  void set_names(std::map<int64_t, std::string> idx2name, std::map<std::string, Attributes> attributes);
  const std::map<int64_t, std::string>& idx2name() const { return idx2name_; }
  std::string name_of(const ParamKey& key) const;  // its name, or its number as text
  const std::map<std::string, Attributes>& attributes() const { return attributes_; }
  const std::map<ParamKey, double>& lr_mult() const { return lr_mult_; }
  const std::map<ParamKey, double>& wd_mult() const { return wd_mult_; }

  double own_lr() const { return lr_; }  // the rate where no schedule decides
  void set_own_lr(double lr);

  double rescale_grad = 1;
  double wd = 0;
  std::optional<double> clip_gradient;
  // The bound of the norm of all rescaled gradients passed to an updater in one call: those of a step in a module and
  // in its store.
  std::optional<double> clip_global_norm;
  LRSchedulerPtr lr_scheduler;
  bool multi_precision = false;

  // The arguments that only this kind has, e.g. "momentum".
  virtual std::vector<std::string> argument_names() const { return {}; }
  virtual OptimizerValue argument(const std::string& name) const;  // a missing bound is "None"
  virtual void set_argument(const std::string& name, const OptimizerValue& value);

  // Counts an update of a parameter, and returns the values an update needs.
  void update_count(const ParamKey& key);
  int64_t count_of(const ParamKey& key) const;
  double lr_of(const ParamKey& key) const;  // with the parameter's multiplier
  double wd_of(const ParamKey& key) const;
  // Are parameters of this name decayed by default?
  virtual bool decays(const std::string& parameter) const { return decays_by_name(parameter); }

  int64_t num_update() const {
    settle();
    return num_update_;
  }
  // Counts of updates, schedule, and whatever an optimizer adds: enough to resume exactly.
  virtual ResumeState resume_state() const;
  virtual void restore(const ResumeState& state);

  // Is update_many() the same work on a device as long as arrays, rates and arguments stay the same? Then
  // repeated_update() counts an update of each parameter and returns that work; `last`, if it is the same as that one.
  // With a condition, a number on the device, the device leaves the updates out where it is 0
  // (core/update_condition.h), and the caller counts them afterwards: count_if() and update_count(). They must not
  // depend on the count.
  virtual bool repeats_updates() const { return false; }
  virtual bool update_depends_on_count() const { return true; }
  virtual FollowingWorkPtr repeated_update(std::span<const Update> updates, const FollowingWorkPtr& last,
                                           const NDArray& condition = {});

  // Can a device leave out the updates by itself (core/update_condition.h)?
  virtual bool is_conditional() const { return false; }
  // The updates since resume_state() returned `before` may be left out by the device. `made` waits until it is known
  // whether they were. That is the case before counts and rates are used again: then updates that were left out are not
  // counted.
  void count_if(std::function<bool()> made, ResumeState before);

  // To be held during updates: an optimizer serves one thread at a time.
  InUse in_use(std::string_view call) const {
    return InUse(busy_, call, "this optimizer", "call it from one thread, or give each thread an optimizer of its own");
  }

 protected:
  explicit Optimizer(const OptimizerParams& params);
  bool uses_master(const NDArray& weight) const;  // a 16-bit weight, and multi_precision
  UpdateRule::StepOptions step_options() const {
    return {.rescale_grad = rescale_grad, .clip_gradient = clip_gradient};
  }
  // lr_of() is learning_rate() times the multiplier. `name` is name_of(key).
  double lr_mult_of(const ParamKey& key, const std::string& name) const;
  double wd_of(const ParamKey& key, const std::string& name) const;
  virtual UpdateUnit own_update_unit() const { return UpdateUnit::parameter; }  // of the arithmetic
  [[noreturn]] void fail_no_argument(const std::string& argument) const;

  double lr_ = 0.01;

 private:
  std::optional<double> multiplier(const ParamKey& key, const std::string& name, const std::map<ParamKey, double>& set,
                                   const std::string& attribute) const;

  std::map<ParamKey, double> lr_mult_, wd_mult_;
  std::map<int64_t, std::string> idx2name_;
  std::map<std::string, Attributes> attributes_;
  int64_t begin_num_update_ = 0;
  int64_t num_update_ = 0;
  std::map<ParamKey, int64_t> index_update_count_;
  struct Unsettled;  // the last count_if()
  void settle() const;
  mutable std::shared_ptr<const Unsettled> unsettled_;
  mutable BusyFlag busy_;
};
using OptimizerPtr = std::shared_ptr<Optimizer>;

// Registers a user-defined optimizer with Optimizer::create.
using OptimizerFactory = std::function<OptimizerPtr(const OptimizerParams& params)>;
void register_optimizer(const std::string& name, OptimizerFactory factory);
std::vector<std::string> list_optimizers();

}  // namespace symbind
