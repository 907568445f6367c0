#include "symbind/train/fit_step.h"

#include <utility>

namespace symbind {
namespace {

thread_local const FitStep* current = nullptr;

}  // namespace

FitStep::FitStep(const BaseModule& module, Call call, EvalMetric* metric)
    : module_(&module), call_(call), metric_(metric), before_(std::exchange(current, this)) {}

FitStep::FitStep(const BaseModule& whole, const BaseModule& part)
    : module_(nullptr), before_(std::exchange(current, this)) {
  if (!before_ || before_->module_ != &whole) return;
  module_ = &part;
  call_ = before_->call_;
  metric_ = before_->metric_;
}

FitStep::~FitStep() { current = before_; }

const FitStep* FitStep::of(const BaseModule& module, Call call) {
  return current && current->module_ == &module && current->call_ == call ? current : nullptr;
}

bool FitStep::update_follows(const BaseModule& module) { return of(module, Call::forward_backward); }
bool FitStep::finish_follows(const BaseModule& module) { return of(module, Call::update); }

EvalMetric* FitStep::metric(const BaseModule& module) {
  const FitStep* const step = of(module, Call::forward_backward);
  return step ? step->metric_ : nullptr;
}

}  // namespace symbind
