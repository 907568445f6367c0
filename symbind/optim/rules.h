// Shared by the built-in update rules, and their factories.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "symbind/optim/options.h"
#include "symbind/optim/update_rule.h"

namespace symbind {

// A rule that has the name and the arguments of `Own`. Only the fields of own_ that are specific to this kind are read:
// common options are stored in the optimizer.
template <optim::Options Own>
class RuleWith : public UpdateRule {
 public:
  std::string name() const override { return Own::name; }
  std::vector<UpdateRule::Argument> arguments() override {
    std::vector<UpdateRule::Argument> all;
    Own::visit_own(own_, [&](const char* name, auto& field) { all.push_back({name, &field}); });
    return all;
  }
  std::optional<double> default_learning_rate() const override { return Own{}.learning_rate; }

 protected:
  Own own_;
};

// The same for a rule whose updates are one operator each.
template <optim::Options Own>
class OneOperatorRule : public RuleWith<Own> {
 public:
  bool is_one_operator() const override { return true; }
};

// Zeros like the weight, and a tuple of several.
inline StateTree blank_state(const NDArray& weight) { return zeros(weight.shape(), weight.context(), weight.dtype()); }
inline StateTree blank_states(const NDArray& weight, int count) {
  std::vector<StateTree> states;
  for (int i = 0; i < count; ++i) states.push_back(blank_state(weight));
  return StateTree::of(std::move(states));
}

// Weight, gradient, and the first arrays of a state that is a tuple: the inputs of an update operator.
std::vector<NDArray> arrays_of(const UpdateRule::Step& step, size_t states);

// Each is in the file of its family.
UpdateRulePtr make_adadelta();
UpdateRulePtr make_adagrad();
UpdateRulePtr make_adam();
UpdateRulePtr make_adamax();
UpdateRulePtr make_adamw();
UpdateRulePtr make_dcasgd();
UpdateRulePtr make_ftml();
UpdateRulePtr make_ftrl();
UpdateRulePtr make_group_adagrad();
UpdateRulePtr make_lamb();
UpdateRulePtr make_lars();
UpdateRulePtr make_lbsgd();
UpdateRulePtr make_nadam();
UpdateRulePtr make_nag();
UpdateRulePtr make_rmsprop();
UpdateRulePtr make_sgd();
UpdateRulePtr make_sgld();
UpdateRulePtr make_signsgd();  // signum without momentum
UpdateRulePtr make_signum();
UpdateRulePtr make_test();

}  // namespace symbind
