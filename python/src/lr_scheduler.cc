// Schedules. The classes that users see (lr_scheduler.py) have their C++ part created by __new__ and set by __init__,
// so a subclass that never calls our __init__ works, and so does unpickling.
#include "lr_scheduler.h"

#include <cmath>
#include <functional>

#include "symbind/core/error.h"

#include "bindings.h"
#include "convert.h"
#include "nanobind_versions.h"

namespace symbind::python {
namespace {

// The base class leaves the rate to its subclasses.
class OpenScheduler : public LRScheduler {
 public:
  OpenScheduler() : LRScheduler(default_base_lr, {}) {}

 protected:
  double after_warm_up(int64_t) override {
    AcquireGil acquire;
    PyErr_SetString(PyExc_NotImplementedError, "a schedule has a method __call__(self, num_update)");
    throw nb::python_error();
  }
};

// The C++ part of a Python object of any of these classes: a built-in schedule, or none, and the Python methods that
// override it.
class PyScheduler final : public OpenScheduler {
 public:
  double operator()(int64_t num_update) override {
    const Override call(trampoline_, "__call__");
    return call ? nb::cast<double>(call(num_update)) : own_rate(num_update);
  }
  double own_rate(int64_t num_update) {
    if (!rule_) return LRScheduler::operator()(num_update);
    const double lr = (*rule_)(num_update);
    base_lr_ = rule_->base_lr();
    return lr;
  }
  void set_base_lr(double lr) override {
    LRScheduler::set_base_lr(lr);
    if (rule_) rule_->set_base_lr(lr);
  }
  std::optional<double> fixed_lr() const override {
    return rule_ && !Override(trampoline_, "__call__") ? rule_->fixed_lr() : std::nullopt;
  }
  std::map<std::string, double> state() const override { return rule_ ? rule_->state() : LRScheduler::state(); }
  void restore(const std::map<std::string, double>& state) override {
    LRScheduler::restore(state);
    if (rule_) rule_->restore(state);
  }
  void set_rule(LRSchedulerPtr rule) {
    static_cast<LRScheduler&>(*this) = *rule;
    rule_ = std::move(rule);
  }
  LRScheduler& rule() { return rule_ ? *rule_ : *this; }

 private:
  LRSchedulerPtr rule_;
  Trampoline<1> trampoline_{this};
};

PyScheduler& python_part(LRScheduler& self) {
  auto* python = dynamic_cast<PyScheduler*>(&self);
  require(python != nullptr, "[lr_scheduler] a schedule made in C++ cannot be initialised again");
  return *python;
}

// The underlying C++ schedule; a C++ schedule is returned itself.
template <class Scheduler = LRScheduler>
Scheduler& rule_of(LRScheduler& self) {
  auto* python = dynamic_cast<PyScheduler*>(&self);
  if constexpr (std::is_same_v<Scheduler, LRScheduler>) return python ? python->rule() : self;
  auto* found = dynamic_cast<Scheduler*>(python ? &python->rule() : &self);
  require(found != nullptr, "[lr_scheduler] this schedule was never initialised: call super().__init__");
  return *found;
}

// Anything that can be called; its base_lr, if it has one, is updated when the base rate changes.
class CallableScheduler final : public LRScheduler {
 public:
  CallableScheduler(Held function, double base_lr) : LRScheduler(base_lr, {}), function_(std::move(function)) {}
  double operator()(int64_t num_update) override {
    AcquireGil acquire;
    return nb::cast<double>(function_.get()(num_update));
  }
  void set_base_lr(double lr) override {
    AcquireGil acquire;
    LRScheduler::set_base_lr(lr);
    if (nb::hasattr(function_.get(), "base_lr")) nb::setattr(function_.get(), "base_lr", nb::cast(lr));
  }
  nb::object function() const { return function_.get(); }

 protected:
  double after_warm_up(int64_t) override { return base_lr_; }

 private:
  Held function_;
};

void set_warm_up(LRScheduler& self, const WarmUp& warm_up, double final_lr) {
  self.set_warm_up(warm_up, final_lr);
  rule_of(self).set_warm_up(warm_up, final_lr);
}

// Changes one option of a schedule that may be in use.
template <class Scheduler, class Change>
void change(Scheduler& self, Change apply) {
  auto options = self.options();
  apply(options);
  const auto state = self.state();
  const WarmUp warm_up = self.warm_up();
  const double final_lr = self.warm_up_final_lr();
  self = Scheduler(options);
  self.set_warm_up(warm_up, final_lr);
  self.restore(state);
}

using SchedulerClass = nb::class_<LRScheduler, PyScheduler>;

// Counts that Python gave as floats (a part of an epoch) may still be integers.
nb::object number_of(double value) {
  if (value == std::floor(value) && std::abs(value) < 1e15) return nb::int_(static_cast<int64_t>(value));
  return nb::float_(value);
}

// Update counts are integers: one is greater than 3.5 if it is greater than 3.
std::vector<int64_t> updates_from(nb::handle values) {
  std::vector<int64_t> updates;
  for (nb::handle value : values) updates.push_back(static_cast<int64_t>(std::floor(nb::cast<double>(value))));
  return updates;
}

// The properties of the kinds are in the base class under private names; the Python classes expose them.
template <class Scheduler, class Options, class Value, class Show = std::identity>
void def_option(SchedulerClass& type, const char* name, Value Options::*option, Show show = {}) {
  type.def_prop_rw(
      name, [option, show](LRScheduler& self) { return show(rule_of<Scheduler>(self).options().*option); },
      [option](LRScheduler& self, Value value) {
        change(rule_of<Scheduler>(self), [&](Options& options) { options.*option = std::move(value); });
      });
}

template <class Scheduler>
void def_count(SchedulerClass& type, const char* name, const char* part) {
  type.def_prop_rw(
      name, [part](LRScheduler& self) { return number_of(rule_of<Scheduler>(self).state().at(part)); },
      [part](LRScheduler& self, int64_t value) {
        rule_of<Scheduler>(self).restore({{part, static_cast<double>(value)}});
      });
}

void bind_warm_up(SchedulerClass& type) {
  type.def("get_warmup_lr", &LRScheduler::warm_up_lr, nb::arg("num_update"))
      .def_prop_rw(
          "warmup_steps", [](const LRScheduler& self) { return self.warm_up().steps; },
          [](LRScheduler& self, int64_t steps) {
            set_warm_up(self, {steps, self.warm_up().begin_lr, self.warm_up().mode}, self.warm_up_final_lr());
          })
      .def_prop_rw(
          "warmup_begin_lr", [](const LRScheduler& self) { return self.warm_up().begin_lr; },
          [](LRScheduler& self, double lr) {
            set_warm_up(self, {self.warm_up().steps, lr, self.warm_up().mode}, self.warm_up_final_lr());
          })
      .def_prop_rw(
          "warmup_mode", [](const LRScheduler& self) { return self.warm_up().mode; },
          [](LRScheduler& self, std::string mode) {
            set_warm_up(self, {self.warm_up().steps, self.warm_up().begin_lr, std::move(mode)},
                        self.warm_up_final_lr());
          })
      .def_prop_rw("warmup_final_lr", &LRScheduler::warm_up_final_lr,
                   [](LRScheduler& self, double lr) { set_warm_up(self, self.warm_up(), lr); });
}

// MXNet's `count` of a MultiFactorScheduler: the step that was passed last.
int64_t last_step(LRScheduler& self) {
  const auto& rule = rule_of<MultiFactorScheduler>(self);
  const auto passed = static_cast<size_t>(rule.state().at("next_step"));
  return passed == 0 ? 0 : rule.options().step.at(passed - 1);
}

void bind_kinds(SchedulerClass& type) {
  def_option<FactorScheduler>(type, "_factor_step", &FactorSchedule::step, number_of);
  def_option<FactorScheduler>(type, "_factor_factor", &FactorSchedule::factor);
  def_option<FactorScheduler>(type, "_factor_stop_factor_lr", &FactorSchedule::stop_factor_lr);
  def_count<FactorScheduler>(type, "_factor_count", "count");
  def_option<MultiFactorScheduler>(type, "_multi_step", &MultiFactorSchedule::step);
  def_option<MultiFactorScheduler>(type, "_multi_factor", &MultiFactorSchedule::factor);
  def_count<MultiFactorScheduler>(type, "_multi_cur_step_ind", "next_step");
  type.def_prop_ro("_multi_count", &last_step);
  def_option<PolyScheduler>(type, "_poly_max_update", &PolySchedule::max_update);
  def_option<PolyScheduler>(type, "_poly_base_lr", &PolySchedule::base_lr);
  def_option<PolyScheduler>(type, "_poly_power", &PolySchedule::pwr, number_of);
  def_option<PolyScheduler>(type, "_poly_final_lr", &PolySchedule::final_lr);
  def_option<CosineScheduler>(type, "_cosine_max_update", &CosineSchedule::max_update);
  def_option<CosineScheduler>(type, "_cosine_base_lr", &CosineSchedule::base_lr);
  def_option<CosineScheduler>(type, "_cosine_final_lr", &CosineSchedule::final_lr);
}

// The functions that implement __init__ of each class.
void bind_setters(SchedulerClass& type) {
  type.def("_set",
           [](LRScheduler& self, double base_lr, int64_t steps, double begin_lr, std::string mode) {
             const FactorScheduler checked({.base_lr = base_lr, .warm_up = {steps, begin_lr, std::move(mode)}});
             self = static_cast<const LRScheduler&>(checked);
           })
      .def("_set_factor",
           [](LRScheduler& self, double step, double factor, double stop_factor_lr, double base_lr, int64_t steps,
              double begin_lr, std::string mode) {
             python_part(self).set_rule(
                 factor_scheduler({step, factor, stop_factor_lr, base_lr, {steps, begin_lr, std::move(mode)}}));
           })
      .def("_set_multi",
           [](LRScheduler& self, nb::handle step, double factor, double base_lr, int64_t steps, double begin_lr,
              std::string mode) {
             python_part(self).set_rule(
                 multi_factor_scheduler({updates_from(step), factor, base_lr, {steps, begin_lr, std::move(mode)}}));
           })
      .def("_set_poly",
           [](LRScheduler& self, int64_t max_update, double base_lr, double pwr, double final_lr, int64_t steps,
              double begin_lr, std::string mode) {
             python_part(self).set_rule(
                 poly_scheduler({max_update, base_lr, pwr, final_lr, {steps, begin_lr, std::move(mode)}}));
           })
      .def("_set_cosine", [](LRScheduler& self, int64_t max_update, double base_lr, double final_lr, int64_t steps,
                             double begin_lr, std::string mode) {
        python_part(self).set_rule(
            cosine_scheduler({max_update, base_lr, final_lr, {steps, begin_lr, std::move(mode)}}));
      });
}

}  // namespace

LRSchedulerPtr scheduler_from(nb::handle value, double base_lr, nb::handle keeper) {
  if (value.is_none()) return nullptr;
  if (nb::isinstance<LRScheduler>(value)) return Held(nb::borrow(value), keeper).as<LRScheduler>();
  if (!PyCallable_Check(value.ptr()))
    throw TypeError(join("expected a schedule: an LRScheduler, or a function of the number of updates, not ",
                         nb::repr(value).c_str()));
  const nb::object own = nb::getattr(value, "base_lr", nb::none());
  if (!own.is_none()) base_lr = nb::cast<double>(own);
  auto schedule = std::make_shared<CallableScheduler>(Held(nb::borrow(value), keeper), base_lr);
  if (own.is_none()) schedule->set_base_lr(base_lr);  // a base_lr of None is for the optimizer to fill in
  return schedule;
}

nb::object scheduler_to_python(const LRSchedulerPtr& scheduler) {
  if (!scheduler) return nb::none();
  if (const auto* callable = dynamic_cast<const CallableScheduler*>(scheduler.get())) return callable->function();
  return nb::cast(scheduler);
}

void bind_lr_scheduler(nb::module_& m) {
  SchedulerClass type(m, "LRScheduler", nb::is_weak_referenceable());
  type.def("__init__", [](LRScheduler* self) { new (self) PyScheduler(); })
      .def(
          "__call__",
          [](LRScheduler& self, int64_t num_update) {
            auto* python = dynamic_cast<PyScheduler*>(&self);
            return python ? python->own_rate(num_update) : self(num_update);
          },
          nb::arg("num_update"), "The learning rate after so many updates.")
      .def_prop_rw("base_lr", &LRScheduler::base_lr, &LRScheduler::set_base_lr,
                   "The learning rate after the warm-up; what the schedule changes.")
      .def("_state", [](const LRScheduler& self) { return self.state(); })
      .def("_restore", [](LRScheduler& self, const std::map<std::string, double>& state) { self.restore(state); });
  bind_warm_up(type);
  bind_setters(type);
  bind_kinds(type);
}

}  // namespace symbind::python
