// Reads the arguments of an optimizer by name; one that nobody asked for is a mistake.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "symbind/optim/optimizer.h"
#include "symbind/optim/options.h"

namespace symbind {

class OptimizerArguments {
 public:
  // Those of one kind, which are noted as its own; and those that every optimizer has.
  OptimizerArguments(Optimizer& optimizer, const OptimizerParams& params)
      : owner_(&optimizer), optimizer_(optimizer.name()), params_(params) {}
  explicit OptimizerArguments(const OptimizerParams& params) : optimizer_("optimizer"), params_(params) {}

  // The argument goes where it belongs, if it was given; a value of the wrong kind fails.
  OptimizerArguments& take(const std::string& name, double& value);
  OptimizerArguments& take(const std::string& name, int64_t& value);
  OptimizerArguments& take(const std::string& name, bool& value);
  OptimizerArguments& take(const std::string& name, std::string& value);
  OptimizerArguments& take(const std::string& name, std::optional<double>& value);  // "None" is none
  OptimizerArguments& take(const std::string& name, LRSchedulerPtr& value);
  // The arguments every optimizer has, which the base class took.
  OptimizerArguments& common();
  // Fails when an argument was given that was not taken, listing those there are.
  void finish() const;

 private:
  template <class T>
  const OptimizerValue* find(const std::string& name, T& value);
  [[noreturn]] void wrong(const std::string& name, const char* wanted) const;

  Optimizer* owner_ = nullptr;
  std::string optimizer_;
  const OptimizerParams& params_;
  std::vector<std::string> names_;
};

// The arguments with a default of the optimizer's own.
OptimizerParams with_default(OptimizerParams params, const std::string& name, OptimizerValue value);

// An optimizer that is known by the name of `Own` and takes its arguments. Of own_ only the fields of this kind alone
// are read: what all optimizers take is in the base class.
template <class Own>
class OptimizerWith : public Optimizer {
 public:
  explicit OptimizerWith(const OptimizerParams& params) : Optimizer(with_default_rate(params)) {
    OptimizerArguments arguments(*this, params);
    arguments.common();
    Own::visit_own(own_, [&](const char* argument, auto& value) { arguments.take(argument, value); });
    arguments.finish();
  }
  std::string name() const override { return Own::name; }

 protected:
  Own own_;

 private:
  static OptimizerParams with_default_rate(const OptimizerParams& params) {
    const std::optional<double> rate = Own{}.learning_rate;
    return rate ? with_default(params, "learning_rate", *rate) : params;
  }
};

// One function per file of this folder.
OptimizerPtr make_sgd(const OptimizerParams& params);
OptimizerPtr make_nag(const OptimizerParams& params);
OptimizerPtr make_sgld(const OptimizerParams& params);
OptimizerPtr make_dcasgd(const OptimizerParams& params);
OptimizerPtr make_signum(const OptimizerParams& params);
OptimizerPtr make_signsgd(const OptimizerParams& params);  // signum without momentum
OptimizerPtr make_adam(const OptimizerParams& params);
OptimizerPtr make_adamw(const OptimizerParams& params);
OptimizerPtr make_adamax(const OptimizerParams& params);
OptimizerPtr make_nadam(const OptimizerParams& params);
OptimizerPtr make_adagrad(const OptimizerParams& params);
OptimizerPtr make_group_adagrad(const OptimizerParams& params);
OptimizerPtr make_rmsprop(const OptimizerParams& params);
OptimizerPtr make_adadelta(const OptimizerParams& params);
OptimizerPtr make_ftrl(const OptimizerParams& params);
OptimizerPtr make_ftml(const OptimizerParams& params);
OptimizerPtr make_lars(const OptimizerParams& params);
OptimizerPtr make_lamb(const OptimizerParams& params);
OptimizerPtr make_lbsgd(const OptimizerParams& params);
OptimizerPtr make_test(const OptimizerParams& params);

}  // namespace symbind
