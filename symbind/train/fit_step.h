// What fit() does next on the calling thread, for the module that it trains: such a module may overlap its call with
// that work, or launch both together. Other modules that run inside of the call, in an operator or an overridden method
// for instance, are not concerned.
#pragma once

namespace symbind {

class BaseModule;
class EvalMetric;

class FitStep {
 public:
  enum class Call {
    forward_backward,  // after which fit() updates the parameters, and the metric with the labels of the batch
    update             // after which fit() calls finish_update() before anything else can see the parameters
  };
  // While it lives, fit() makes this call of the module. The metric is one that may be updated with the passes.
  FitStep(const BaseModule& module, Call call, EvalMetric* metric = nullptr);
  // While it lives, the part makes the call for the whole, which is a module that consists of several.
  FitStep(const BaseModule& whole, const BaseModule& part);
  ~FitStep();
  FitStep(const FitStep&) = delete;
  FitStep& operator=(const FitStep&) = delete;

  static bool update_follows(const BaseModule& module);
  static bool finish_follows(const BaseModule& module);
  static EvalMetric* metric(const BaseModule& module);  // that is updated after forward_backward(); or null

 private:
  static const FitStep* of(const BaseModule& module, Call call);

  const BaseModule* module_;
  Call call_ = Call::forward_backward;
  EvalMetric* metric_ = nullptr;
  const FitStep* const before_;
};

}  // namespace symbind
