// An optimizer that applies an update rule, as all built-in optimizers do. A derived class may override update(), which
// is then called for every parameter, and step_lr() and step_wd().
#pragma once

#include "symbind/optim/optimizer.h"
#include "symbind/optim/update_rule.h"

namespace SYMBIND_API symbind {

class RuleOptimizer : public Optimizer {
 public:
  // Takes the arguments that all optimizers have and those of the rule; any other fails, listing the known ones.
  RuleOptimizer(UpdateRulePtr rule, const OptimizerParams& params);

  std::string name() const override { return rule_->name(); }
  UpdateRule& rule() const { return *rule_; }

  StateTree create_state(const ParamKey& key, const NDArray& weight) override;
  void update(const Update& update) override;
  void update_many(std::span<const Update> updates) override;
  StateTree create_state_multi_precision(const ParamKey& key, const NDArray& weight) override;
  void update_multi_precision(const Update& update) override;

  bool counts_updates() const override { return rule_->counting() != UpdateRule::Counting::never; }
  bool draws_random() const override { return rule_->draws_random(); }
  bool is_conditional() const override;
  bool repeats_updates() const override;
  bool update_depends_on_count() const override;
  FollowingWorkPtr repeated_update(std::span<const Update> updates, const FollowingWorkPtr& last,
                                   const NDArray& condition) override;
  bool decays(const std::string& parameter) const override { return rule_->decays(parameter); }
  std::vector<std::string> argument_names() const override;
  OptimizerValue argument(const std::string& name) const override;
  void set_argument(const std::string& name, const OptimizerValue& value) override;
  ResumeState resume_state() const override;
  void restore(const ResumeState& state) override;

 protected:
  // Are all updates those of the rule, with its rates and decays? Then many parameters may be updated by one operator,
  // in pieces, and by a device alone. Not in a derived class, which may override them; one that does not may say so.
  virtual bool updates_by_rule() const;
  UpdateUnit own_update_unit() const override;
  // The rate and the decay of one parameter's update. `name` is name_of(key), `rate` is learning_rate().
  virtual double step_lr(const ParamKey& key, const std::string& name, double rate) const {
    return rate * lr_mult_of(key, name);
  }
  virtual double step_wd(const ParamKey& key, const std::string& name) const { return wd_of(key, name); }

 private:
  // Counts the updates and adds their steps. With `copies`, 16-bit weights may have a float32 copy.
  void count(std::span<const Update> updates, bool copies, std::vector<UpdateRule::Step>& steps);
  std::vector<UpdateRule::Step> steps_of(std::span<const Update> updates, bool copies) const;  // without counts
  void apply(std::span<const Update> updates, bool copies);
  UpdateRule::Step step_of(const Update& update) const;
  UpdateRule::Argument find(const std::string& argument) const;
  static uint64_t new_version();  // that no other optimizer of the process has

  UpdateRulePtr rule_;
  uint64_t arguments_version_ = new_version();
};

}  // namespace symbind
