// The arguments of an optimizer by name.
#pragma once

#include <any>
#include <cstdint>
#include <map>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

#include "symbind/optim/lr_scheduler.h"
#include "symbind/optim/options.h"

namespace SYMBIND_API symbind {

// A value that only an optimizer written in another language can read.
struct OptimizerObject {
  std::any value;
};

// An argument of an optimizer: a number, a boolean, a string, a schedule, or an object of another language.
class OptimizerValue {
 public:
  OptimizerValue(bool value) : value_(value) {}
  OptimizerValue(int value) : value_(static_cast<double>(value)) {}
  OptimizerValue(int64_t value) : value_(static_cast<double>(value)) {}
  OptimizerValue(double value) : value_(value) {}
  OptimizerValue(const char* value) : value_(std::string(value)) {}
  OptimizerValue(std::string value) : value_(std::move(value)) {}
  OptimizerValue(LRSchedulerPtr value) : value_(std::move(value)) {}
  OptimizerValue(OptimizerObject value) : value_(std::move(value)) {}
  const std::variant<bool, double, std::string, LRSchedulerPtr, OptimizerObject>& get() const { return value_; }

 private:
  std::variant<bool, double, std::string, LRSchedulerPtr, OptimizerObject> value_;
};

// By MXNet's names: {{"learning_rate", 0.1}, {"momentum", 0.9}}.
using OptimizerParams = std::map<std::string, OptimizerValue>;

// The same from a struct of optim/options.h, without fields that are not set.
template <optim::Options Given>
OptimizerParams params_of(const Given& options) {
  OptimizerParams params;
  const auto put = [&]<class T>(const char* name, const T& value) {
    if constexpr (requires { value.has_value(); }) {
      if (value) params.emplace(name, *value);
    } else if constexpr (std::is_same_v<T, LRSchedulerPtr>) {
      if (value) params.emplace(name, value);
    } else {
      params.emplace(name, value);
    }
  };
  optim::visit_common(options, put);
  Given::visit_own(options, put);
  return params;
}

}  // namespace symbind
