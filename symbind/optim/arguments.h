// Reads the arguments of an optimizer by name; one that is never read is an error.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "symbind/optim/optimizer_params.h"

namespace symbind {

class OptimizerArguments {
 public:
  // `optimizer` is named in errors.
  OptimizerArguments(std::string optimizer, const OptimizerParams& params)
      : optimizer_(std::move(optimizer)), params_(params) {}

  // Assigns the argument to `value`, if it was given; a value of the wrong kind fails.
  OptimizerArguments& take(const std::string& name, double& value);
  OptimizerArguments& take(const std::string& name, int64_t& value);
  OptimizerArguments& take(const std::string& name, bool& value);
  OptimizerArguments& take(const std::string& name, std::string& value);
  OptimizerArguments& take(const std::string& name, std::optional<double>& value);  // "None" is none
  OptimizerArguments& take(const std::string& name, LRSchedulerPtr& value);
  // The arguments every optimizer has, which class Optimizer took.
  OptimizerArguments& common();
  // Fails when an argument was given that was not taken, listing the known ones.
  void finish() const;

 private:
  const OptimizerValue* find(const std::string& name);
  [[noreturn]] void wrong(const std::string& name, const char* wanted) const;

  std::string optimizer_;
  const OptimizerParams& params_;
  std::vector<std::string> names_;
};

}  // namespace symbind
