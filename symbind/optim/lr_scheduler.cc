#include "symbind/optim/lr_scheduler.h"

#include <cmath>
#include <numbers>

#include "symbind/core/error.h"
#include "symbind/core/log.h"

namespace symbind {

namespace {

constexpr const char* base_name = "lr_scheduler";

}  // namespace

void require_finite_rate(const char* who, const char* name, double lr) {
  require(std::isfinite(lr), "[", who, "] ", name, " must be finite: ", lr);
}

LRScheduler::LRScheduler(double base_lr, WarmUp warm_up)
    : base_lr_(base_lr), warm_up_(std::move(warm_up)), warm_up_final_lr_(base_lr) {
  require_finite_rate(base_name, "base_lr", base_lr);
  require_finite_rate(base_name, "the warm-up's begin_lr", warm_up_.begin_lr);
  require(warm_up_.begin_lr <= base_lr,
          "[lr_scheduler] the warm-up's begin_lr must not exceed base_lr: ", warm_up_.begin_lr, ", ", base_lr);
  require(warm_up_.steps >= 0, "[lr_scheduler] the warm-up's steps must be at least 0: ", warm_up_.steps);
  require(warm_up_.mode == "linear" || warm_up_.mode == "constant",
          "[lr_scheduler] the warm-up's mode must be linear or constant: ", warm_up_.mode);
}

void LRScheduler::set_base_lr(double lr) {
  require_finite_rate(base_name, "base_lr", lr);
  base_lr_ = lr;
}

void LRScheduler::set_warm_up(WarmUp warm_up, double final_lr) {
  require_finite_rate(base_name, "the warm-up's begin_lr", warm_up.begin_lr);
  require_finite_rate(base_name, "the warm-up's final rate", final_lr);
  warm_up_ = std::move(warm_up);
  warm_up_final_lr_ = final_lr;
}

double LRScheduler::operator()(int64_t num_update) {
  return num_update < warm_up_.steps ? warm_up_lr(num_update) : after_warm_up(num_update);
}

double LRScheduler::warm_up_lr(int64_t num_update) const {
  if (warm_up_.mode == "constant") return warm_up_.begin_lr;
  const double rise = warm_up_final_lr_ - warm_up_.begin_lr;
  return warm_up_.begin_lr + rise * static_cast<double>(num_update) / static_cast<double>(warm_up_.steps);
}

std::map<std::string, double> LRScheduler::state() const {
  return {{"base_lr", base_lr_}, {"first_lr", warm_up_final_lr_}};
}

void LRScheduler::restore(const std::map<std::string, double>& state) {
  if (const auto found = state.find("base_lr"); found != state.end()) base_lr_ = found->second;
}

namespace {

// The line that log parsers expect.
void log_rate(int64_t num_update, double lr) {
  log_info("Update[", num_update, "]: Change learning rate to ", scientific_text(lr, 5));
}

template <class Number>
void restore_number(const std::map<std::string, double>& state, const char* name, Number& number) {
  if (const auto found = state.find(name); found != state.end()) number = static_cast<Number>(found->second);
}

}  // namespace

// ---- by steps -------------------------------------------------------------------------------------------------------

FactorScheduler::FactorScheduler(const FactorSchedule& options)
    : LRScheduler(options.base_lr, options.warm_up), options_(options) {
  require(options.step >= 1, "[factor_scheduler] step must be at least 1: ", options.step);
  require_finite_rate("factor_scheduler", "step", options.step);
  require(options.factor <= 1, "[factor_scheduler] factor must not exceed 1, or the rate grows: ", options.factor);
  require_finite_rate("factor_scheduler", "factor", options.factor);
  require_finite_rate("factor_scheduler", "stop_factor_lr", options.stop_factor_lr);
}

std::map<std::string, double> FactorScheduler::state() const {
  auto state = LRScheduler::state();
  state["count"] = count_;
  return state;
}

void FactorScheduler::restore(const std::map<std::string, double>& state) {
  LRScheduler::restore(state);
  restore_number(state, "count", count_);
}

double FactorScheduler::after_warm_up(int64_t num_update) {
  const double before = base_lr_;
  while (static_cast<double>(num_update) > count_ + options_.step) {
    count_ += options_.step;
    base_lr_ *= options_.factor;
    if (base_lr_ < options_.stop_factor_lr) base_lr_ = options_.stop_factor_lr;
  }
  if (base_lr_ != before) log_rate(num_update, base_lr_);
  return base_lr_;
}

MultiFactorScheduler::MultiFactorScheduler(const MultiFactorSchedule& options)
    : LRScheduler(options.base_lr, options.warm_up), options_(options) {
  require(!options.step.empty(), "[multi_factor_scheduler] step must list at least one update");
  for (size_t i = 0; i < options.step.size(); ++i)
    require(
        options.step[i] >= 1 && (i == 0 || options.step[i] > options.step[i - 1]),
        "[multi_factor_scheduler] step must be a growing list of numbers from 1 on: ", comma_separated(options.step));
  require(options.factor <= 1,
          "[multi_factor_scheduler] factor must not exceed 1, or the rate grows: ", options.factor);
  require_finite_rate("multi_factor_scheduler", "factor", options.factor);
}

std::map<std::string, double> MultiFactorScheduler::state() const {
  auto state = LRScheduler::state();
  state["next_step"] = static_cast<double>(next_);
  return state;
}

void MultiFactorScheduler::restore(const std::map<std::string, double>& state) {
  LRScheduler::restore(state);
  restore_number(state, "next_step", next_);
}

double MultiFactorScheduler::after_warm_up(int64_t num_update) {
  const double before = base_lr_;
  const auto steps = static_cast<int64_t>(options_.step.size());
  for (; next_ < steps && num_update > options_.step[static_cast<size_t>(next_)]; ++next_) base_lr_ *= options_.factor;
  if (base_lr_ != before) log_rate(num_update, base_lr_);
  return base_lr_;
}

// ---- along a curve --------------------------------------------------------------------------------------------------

CurveScheduler::CurveScheduler(const char* who, int64_t max_update, double base_lr, double final_lr,
                               const WarmUp& warm_up)
    : LRScheduler(base_lr, warm_up), max_update_(max_update), first_lr_(base_lr), final_lr_(final_lr) {
  require_finite_rate(who, "final_lr", final_lr);
  require(max_update >= 1, "[", who, "] max_update must be at least 1: ", max_update);
  require(max_update > warm_up.steps, "[", who, "] max_update must exceed the warm-up's steps: ", max_update, ", ",
          warm_up.steps);
}

double CurveScheduler::after_warm_up(int64_t num_update) {
  if (num_update <= max_update_) {
    const double part =
        static_cast<double>(num_update - warm_up().steps) / static_cast<double>(max_update_ - warm_up().steps);
    base_lr_ = final_lr_ + (first_lr_ - final_lr_) * curve(part);
  }
  return base_lr_;
}

PolyScheduler::PolyScheduler(const PolySchedule& options)
    : CurveScheduler("poly_scheduler", options.max_update, options.base_lr, options.final_lr, options.warm_up),
      options_(options) {
  require_finite_rate("poly_scheduler", "pwr", options.pwr);
}

double PolyScheduler::curve(double part) const { return std::pow(1 - part, options_.pwr); }

CosineScheduler::CosineScheduler(const CosineSchedule& options)
    : CurveScheduler("cosine_scheduler", options.max_update, options.base_lr, options.final_lr, options.warm_up),
      options_(options) {}

double CosineScheduler::curve(double part) const { return (1 + std::cos(std::numbers::pi * part)) / 2; }

LRSchedulerPtr factor_scheduler(const FactorSchedule& options) { return std::make_shared<FactorScheduler>(options); }
LRSchedulerPtr multi_factor_scheduler(const MultiFactorSchedule& options) {
  return std::make_shared<MultiFactorScheduler>(options);
}
LRSchedulerPtr poly_scheduler(const PolySchedule& options) { return std::make_shared<PolyScheduler>(options); }
LRSchedulerPtr cosine_scheduler(const CosineSchedule& options) { return std::make_shared<CosineScheduler>(options); }

}  // namespace symbind
