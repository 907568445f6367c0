// Learning rates as functions of the number of updates, each with a warm-up.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "symbind/core/api.h"

namespace SYMBIND_API symbind {

struct WarmUp {
  int64_t steps = 0;
  double begin_lr = 0;
  std::string mode = "linear";  // or "constant"
};

// Fails if a learning rate is not finite; the message names `who` and the argument.
void require_finite_rate(const char* who, const char* name, double lr);

class LRScheduler {
 public:
  static constexpr double default_base_lr = 0.01;

  LRScheduler(double base_lr, WarmUp warm_up);
  virtual ~LRScheduler() = default;

  virtual double operator()(int64_t num_update);
  double base_lr() const { return base_lr_; }
  virtual void set_base_lr(double lr);
  // The rate that the schedule begins at whatever set_base_lr() is given; none: it follows base_lr().
  virtual std::optional<double> fixed_lr() const { return std::nullopt; }

  // Its current state, by name, so that training can be resumed exactly; `first_lr` is the initial rate.
  virtual std::map<std::string, double> state() const;
  virtual void restore(const std::map<std::string, double>& state);

  const WarmUp& warm_up() const { return warm_up_; }
  double warm_up_final_lr() const { return warm_up_final_lr_; }
  void set_warm_up(WarmUp warm_up, double final_lr);
  double warm_up_lr(int64_t num_update) const;

 protected:
  virtual double after_warm_up(int64_t num_update) = 0;
  double base_lr_;

 private:
  WarmUp warm_up_;
  double warm_up_final_lr_;
};
using LRSchedulerPtr = std::shared_ptr<LRScheduler>;

// The rate is multiplied by factor every `step` updates.
struct FactorSchedule {
  double step = 1;  // at least 1; may be fractional, e.g. as a part of an epoch
  double factor = 1;
  double stop_factor_lr = 1e-8;
  double base_lr = LRScheduler::default_base_lr;
  WarmUp warm_up = {};
};
// The rate is multiplied by factor at each of the listed updates.
struct MultiFactorSchedule {
  std::vector<int64_t> step = {};
  double factor = 1;
  double base_lr = LRScheduler::default_base_lr;
  WarmUp warm_up = {};
};
// From base_lr to final_lr along a power, or along half a cosine wave.
struct PolySchedule {
  int64_t max_update = 0;
  double base_lr = LRScheduler::default_base_lr;
  double pwr = 2;
  double final_lr = 0;
  WarmUp warm_up = {};
};
struct CosineSchedule {
  int64_t max_update = 0;
  double base_lr = LRScheduler::default_base_lr;
  double final_lr = 0;
  WarmUp warm_up = {};
};

class FactorScheduler : public LRScheduler {
 public:
  explicit FactorScheduler(const FactorSchedule& options);
  const FactorSchedule& options() const { return options_; }
  std::map<std::string, double> state() const override;
  void restore(const std::map<std::string, double>& state) override;

 protected:
  double after_warm_up(int64_t num_update) override;

 private:
  FactorSchedule options_;
  double count_ = 0;  // where the rate was last lowered
};

class MultiFactorScheduler : public LRScheduler {
 public:
  explicit MultiFactorScheduler(const MultiFactorSchedule& options);
  const MultiFactorSchedule& options() const { return options_; }
  std::map<std::string, double> state() const override;
  void restore(const std::map<std::string, double>& state) override;

 protected:
  double after_warm_up(int64_t num_update) override;

 private:
  MultiFactorSchedule options_;
  int64_t next_ = 0;  // position in options.step
};

// From the first rate to the final one along `curve`, which falls from 1 to 0.
class CurveScheduler : public LRScheduler {
 public:
  CurveScheduler(const char* who, int64_t max_update, double base_lr, double final_lr, const WarmUp& warm_up);
  std::optional<double> fixed_lr() const override { return first_lr_; }  // as in MXNet

 protected:
  virtual double curve(double part) const = 0;
  double after_warm_up(int64_t num_update) override;

 private:
  int64_t max_update_;
  double first_lr_, final_lr_;
};

class PolyScheduler : public CurveScheduler {
 public:
  explicit PolyScheduler(const PolySchedule& options);
  const PolySchedule& options() const { return options_; }

 protected:
  double curve(double part) const override;

 private:
  PolySchedule options_;
};

class CosineScheduler : public CurveScheduler {
 public:
  explicit CosineScheduler(const CosineSchedule& options);
  const CosineSchedule& options() const { return options_; }

 protected:
  double curve(double part) const override;

 private:
  CosineSchedule options_;
};

LRSchedulerPtr factor_scheduler(const FactorSchedule& options);
LRSchedulerPtr multi_factor_scheduler(const MultiFactorSchedule& options);
LRSchedulerPtr poly_scheduler(const PolySchedule& options);
LRSchedulerPtr cosine_scheduler(const CosineSchedule& options);

}  // namespace symbind
