#include "symbind/optim/arguments.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "symbind/core/error_kinds.h"
#include "symbind/graph/param.h"

namespace symbind {
namespace {

std::string text_of(const OptimizerValue& value) {
  if (const auto* truth = std::get_if<bool>(&value.get())) return *truth ? "True" : "False";
  if (const auto* number = std::get_if<double>(&value.get())) return join(*number);
  if (const auto* text = std::get_if<std::string>(&value.get())) return "\"" + *text + "\"";
  return std::holds_alternative<LRSchedulerPtr>(value.get()) ? "a schedule" : "an object";
}

// Numbers may come as text, from a command line or a file.
std::optional<double> number_of(const OptimizerValue& value) {
  if (const auto* number = std::get_if<double>(&value.get())) return *number;
  if (const auto* truth = std::get_if<bool>(&value.get())) return *truth ? 1 : 0;
  if (const auto* text = std::get_if<std::string>(&value.get())) {
    try {
      double number = 0;
      parse(*text, number);
      return number;
    } catch (const Error&) {
      return std::nullopt;
    }
  }
  return std::nullopt;
}

}  // namespace

const OptimizerValue* OptimizerArguments::find(const std::string& name) {
  names_.push_back(name);
  const auto found = params_.find(name);
  return found == params_.end() ? nullptr : &found->second;
}

void OptimizerArguments::wrong(const std::string& name, const char* wanted) const {
  fail("[", optimizer_, "] ", name, " must be ", wanted, ": ", text_of(params_.at(name)));
}

OptimizerArguments& OptimizerArguments::take(const std::string& name, double& value) {
  if (const OptimizerValue* given = find(name)) {
    const auto number = number_of(*given);
    if (!number) wrong(name, "a number");
    if (std::isnan(*number)) wrong(name, "finite");
    value = *number;
  }
  return *this;
}

OptimizerArguments& OptimizerArguments::take(const std::string& name, int64_t& value) {
  if (const OptimizerValue* given = find(name)) {
    const auto number = number_of(*given);
    if (!number || *number != std::floor(*number) || std::abs(*number) > 1e15) wrong(name, "a whole number");
    value = static_cast<int64_t>(*number);
  }
  return *this;
}

OptimizerArguments& OptimizerArguments::take(const std::string& name, bool& value) {
  if (const OptimizerValue* given = find(name)) {
    if (const auto* text = std::get_if<std::string>(&given->get())) {
      if (*text != "True" && *text != "False" && *text != "true" && *text != "false") wrong(name, "True or False");
      value = *text == "True" || *text == "true";
      return *this;
    }
    const auto number = number_of(*given);
    if (!number) wrong(name, "True or False");
    value = *number != 0;
  }
  return *this;
}

OptimizerArguments& OptimizerArguments::take(const std::string& name, std::string& value) {
  if (const OptimizerValue* given = find(name)) {
    const auto* text = std::get_if<std::string>(&given->get());
    if (!text) wrong(name, "a text");
    value = *text;
  }
  return *this;
}

OptimizerArguments& OptimizerArguments::take(const std::string& name, std::optional<double>& value) {
  if (const OptimizerValue* given = find(name)) {
    const auto* text = std::get_if<std::string>(&given->get());
    if (text && *text == "None") {
      value.reset();
      return *this;
    }
    value = number_of(*given);
    if (!value) wrong(name, "a number or None");
    if (std::isnan(*value)) wrong(name, "finite");
  }
  return *this;
}

OptimizerArguments& OptimizerArguments::take(const std::string& name, LRSchedulerPtr& value) {
  if (const OptimizerValue* given = find(name)) {
    const auto* schedule = std::get_if<LRSchedulerPtr>(&given->get());
    if (!schedule) wrong(name, "a schedule");
    value = *schedule;
  }
  return *this;
}

OptimizerArguments& OptimizerArguments::common() {
  const optim::Common all;
  optim::visit_common(all, [&](const char* name, const auto&) { names_.emplace_back(name); });
  return *this;
}

void OptimizerArguments::finish() const {
  const std::set<std::string> known(names_.begin(), names_.end());
  for (const auto& [name, value] : params_)
    require_as<UnknownArgumentError>(known.contains(name), "[", optimizer_, "] has no argument ", name,
                                     "; its arguments are ", comma_separated(known));
}

}  // namespace symbind
