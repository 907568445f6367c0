#include "symbind/optim/update_rule.h"

#include <map>

#include "symbind/core/error.h"
#include "symbind/optim/rules.h"

namespace symbind {
namespace {

const std::map<std::string, UpdateRulePtr (*)()>& makers() {
  static const std::map<std::string, UpdateRulePtr (*)()> all{
      {"adadelta", make_adadelta}, {"adagrad", make_adagrad},
      {"adam", make_adam},         {"adamw", make_adamw},
      {"adamax", make_adamax},     {"ccsgd", make_sgd},
      {"dcasgd", make_dcasgd},     {"ftml", make_ftml},
      {"ftrl", make_ftrl},         {"groupadagrad", make_group_adagrad},
      {"lamb", make_lamb},         {"lars", make_lars},
      {"lbsgd", make_lbsgd},       {"nadam", make_nadam},
      {"nag", make_nag},           {"rmsprop", make_rmsprop},
      {"sgd", make_sgd},           {"sgld", make_sgld},
      {"signsgd", make_signsgd},   {"signum", make_signum},
      {"test", make_test},
  };
  return all;
}

}  // namespace

bool decays_by_name(const std::string& parameter) {
  return parameter.ends_with("_weight") || parameter.ends_with("_gamma");
}

void UpdateRule::update_many(std::span<const Step> steps, const StepOptions& options) {
  for (const Step& step : steps) update(step, options);
}

StateTree UpdateRule::create_state_with_copy(const std::string& name, const NDArray& weight) const {
  const NDArray copy = weight.astype(DType::float32);
  return StateTree::of({copy, create_state(name, copy)});
}

std::vector<NDArray> arrays_of(const UpdateRule::Step& step, size_t states) {
  const std::vector<StateTree>& parts = step.state->tuple;
  require(parts.size() >= states, "the state of ", step.name, " must be a tuple of ", states, " arrays");
  std::vector<NDArray> arrays{step.weight, step.grad};
  for (size_t i = 0; i < states; ++i) arrays.push_back(parts[i].array);
  return arrays;
}

UpdateRulePtr make_update_rule(const std::string& name) {
  const auto found = makers().find(name);
  require(found != makers().end(), "unknown update rule ", name, "; there are ", comma_separated(list_update_rules()));
  return found->second();
}

std::vector<std::string> list_update_rules() {
  std::vector<std::string> names;
  for (const auto& [name, maker] : makers()) names.push_back(name);
  return names;
}

}  // namespace symbind
