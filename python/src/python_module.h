// A module whose steps may be written in Python: a class that derives from BaseModule or Module there overrides methods
// and properties, and the loops in C++ (fit, score, predict) call them.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "symbind/train/module.h"

#include "batch.h"
#include "convert.h"
#include "metric.h"
#include "monitor.h"

namespace symbind::python {

// The steps that a Python class may define, and which of them the class of an object defines.
class Overrides {
 public:
  enum Name {
    symbol,
    data_names,
    label_names,
    output_names,
    data_shapes,
    label_shapes,
    output_shapes,
    bind,
    init_params,
    init_optimizer,
    get_params,
    set_params,
    prepare,
    forward,
    backward,
    update,
    get_outputs,
    get_input_grads,
    update_metric,
    install_monitor,
    forward_backward,
    score,
    count
  };
  static const char* text(Name name);

  // With the GIL held: the method or property of `self` if it or its class defines it beyond `base`, else an invalid
  // object.
  nb::object find(nb::handle self, nb::handle base, Name name) const;
  bool known_missing(Name name) const { return found_[name] == Found::no; }
  void look_again() const { found_.fill(Found::unknown); }

 private:
  enum class Found : char { unknown, no, yes };
  mutable std::array<Found, count> found_ = {};
};

nb::object logger_of(nb::handle module);  // its attribute `logger`, if it has one
std::optional<NamedArrays> optional_arrays(nb::handle value);

// Arguments that C++ takes by name or as an object.
OptimizerArg optimizer_arg_from(nb::handle value, nb::handle keeper = {});
// The keeper of a module's optimizer: the module, or a store of the user's, which may outlive it.
nb::handle keeper_of_optimizer(nb::handle module, nb::handle kvstore);

// Arguments for Python.
nb::dict arguments_of(const BindArgs& args);
nb::dict arguments_of(const InitParamsArgs& args);
nb::dict arguments_of(const InitOptimizerArgs& args);
nb::object module_to_python(BaseModule* module);
std::vector<std::pair<std::string, Shape>> output_shapes_from(nb::handle value);
BaseModule::Params params_from(nb::handle value);
// Validates in fit() by score() as a Python class defines it.
EvalMetric::NameValues validate_by(const nb::object& score, const FitArgs& args, const MetricArg& metric, int epoch);

// Scripts replace methods of a single object, too (mod.update = …): each loop looks for them again when it starts.
class LooksForOverrides {
 public:
  virtual ~LooksForOverrides() = default;
  virtual void look_again() const = 0;
  virtual bool is_given_batches() const = 0;      // by fit, score or predict
  virtual bool forward_is_in_python() const = 0;  // else forward_backward() of C++ reads its batch
};
void look_again(const BaseModule& module);
bool is_given_batches(const BaseModule& module);
// The batch of a call of forward_backward() in Python.
DataBatch batch_for(const BaseModule& module, nb::handle batch);
// update_metric as Python defines it, with the labels of a batch that C++ has not read.
void update_metric_by_python(const nb::object& method, EvalMetric& metric, const DataBatch& batch);
// bind as Python defines it, with descriptions that C++ cannot read; false if these are not of Python.
bool bind_by_python(const nb::object& method, DataIter& train_data, const BindArgs& args);

template <class Base>
class PythonModule final : public Base, public LooksForOverrides {
 public:
  void look_again() const override { overrides_.look_again(); }
  bool is_given_batches() const override { return forward_is_in_python() || defines(Overrides::forward_backward); }
  bool forward_is_in_python() const override { return defines(Overrides::forward); }
  using Base::Base;
  static constexpr bool abstract = std::is_same_v<Base, BaseModule>;

  const Symbol& symbol() const override {
    return step<const Symbol&, false>(
        Overrides::symbol,
        [this](const nb::object& value) -> const Symbol& {
          if (value.is_none()) return BaseModule::symbol();
          symbol_ = std::make_unique<Symbol>(nb::cast<Symbol>(value));
          return *symbol_;
        },
        [](auto* base) -> const Symbol& { return base->Base::symbol(); });
  }
  std::vector<std::string> data_names() const override {
    return step<std::vector<std::string>>(Overrides::data_names, &names_from,
                                          [](auto* base) { return base->Base::data_names(); });
  }
  std::vector<std::string> label_names() const override {
    return step<std::vector<std::string>>(Overrides::label_names, &names_from,
                                          [](auto* base) { return base->Base::label_names(); });
  }
  std::vector<std::string> output_names() const override {
    return step<std::vector<std::string>>(Overrides::output_names, &names_from,
                                          [](auto* base) { return base->Base::output_names(); });
  }
  std::vector<DataDesc> data_shapes() const override {
    return step<std::vector<DataDesc>>(Overrides::data_shapes, &descs_from,
                                       [](auto* base) { return base->Base::data_shapes(); });
  }
  std::vector<DataDesc> label_shapes() const override {
    return step<std::vector<DataDesc>>(Overrides::label_shapes, &descs_from,
                                       [](auto* base) { return base->Base::label_shapes(); });
  }
  std::vector<std::pair<std::string, Shape>> output_shapes() const override {
    return step<std::vector<std::pair<std::string, Shape>>>(Overrides::output_shapes, &output_shapes_from,
                                                            [](auto* base) { return base->Base::output_shapes(); });
  }

  void bind(const std::vector<DataDesc>& data, const std::vector<DataDesc>& label, const BindArgs& args) override {
    step<void>(
        Overrides::bind,
        [&](const nb::object& method) {
          nb::dict arguments = arguments_of(args);
          arguments["data_shapes"] = list_of(data);
          arguments["label_shapes"] = label.empty() ? nb::none() : nb::object(list_of(label));
          method(**arguments);
        },
        [&](auto* base) { base->Base::bind(data, label, args); });
  }
  void init_params(const InitParamsArgs& args) override {
    step<void>(
        Overrides::init_params, [&](const nb::object& method) { method(**arguments_of(args)); },
        [&](auto* base) { base->Base::init_params(args); });
  }
  void init_optimizer(const InitOptimizerArgs& args) override {
    step<void>(
        Overrides::init_optimizer, [&](const nb::object& method) { method(**arguments_of(args)); },
        [&](auto* base) { base->Base::init_optimizer(args); });
  }
  BaseModule::Params get_params() override {
    return step<BaseModule::Params>(
        Overrides::get_params, [](const nb::object& method) { return params_from(nb::object(method())); },
        [](auto* base) { return base->Base::get_params(); });
  }
  void set_params(const NamedArrays& arg_params, const NamedArrays& aux_params, bool allow_missing, bool force_init,
                  bool allow_extra) override {
    step<void, false>(
        Overrides::set_params,
        [&](const nb::object& method) {
          nb::dict options;  // only those that were given: a class may not accept others
          if (allow_missing) options["allow_missing"] = true;
          if (!force_init) options["force_init"] = false;
          if (allow_extra) options["allow_extra"] = true;
          method(dict_of(arg_params), dict_of(aux_params), **options);
        },
        [&](auto* base) { base->Base::set_params(arg_params, aux_params, allow_missing, force_init, allow_extra); });
  }
  void prepare(const DataBatch& batch) override {
    step<void, false>(
        Overrides::prepare, [&](const nb::object& method) { method(batch_to_python(batch)); },
        [&](auto* base) {
          if (!has_only_source(batch)) base->Base::prepare(batch);  // else left to forward()
        });
  }
  using Base::forward;
  void forward(const DataBatch& batch, std::optional<bool> is_train) override {
    step<void>(
        Overrides::forward,
        [&](const nb::object& method) {
          if (is_train)
            method(batch_to_python(batch), nb::arg("is_train") = *is_train);
          else
            method(batch_to_python(batch));
        },
        [&](auto* base) { base->Base::forward(*ReadBatch(batch), is_train); });
  }
  void backward(const std::vector<NDArray>& out_grads) override {
    step<void>(
        Overrides::backward,
        [&](const nb::object& method) {
          if (out_grads.empty())
            method();
          else
            method(list_of(out_grads));
        },
        [&](auto* base) { base->Base::backward(out_grads); });
  }
  void update() override {
    step<void>(
        Overrides::update, [](const nb::object& method) { method(); }, [](auto* base) { base->Base::update(); });
  }
  std::vector<NDArray> get_outputs() override {
    return step<std::vector<NDArray>>(
        Overrides::get_outputs, [](const nb::object& method) { return arrays_from(nb::object(method())); },
        [](auto* base) { return base->Base::get_outputs(); });
  }
  std::vector<NDArray> get_input_grads() override {
    return step<std::vector<NDArray>>(
        Overrides::get_input_grads, [](const nb::object& method) { return arrays_from(nb::object(method())); },
        [](auto* base) { return base->Base::get_input_grads(); });
  }
  void update_metric(EvalMetric& metric, const std::vector<NDArray>& labels, bool pre_sliced) override {
    step<void>(
        Overrides::update_metric, [&](const nb::object& method) { method(metric_to_python(&metric), list_of(labels)); },
        [&](auto* base) { base->Base::update_metric(metric, labels, pre_sliced); });
  }
  void install_monitor(Monitor& monitor) override {
    step<void>(
        Overrides::install_monitor, [&](const nb::object& method) { method(monitor_to_python(monitor)); },
        [&](auto* base) { base->Base::install_monitor(monitor); });
  }
  void forward_backward(const DataBatch& batch) override {
    step<void, false>(
        Overrides::forward_backward, [&](const nb::object& method) { method(batch_to_python(batch)); },
        [&](auto* base) {
          if (forward_is_in_python()) return base->Base::forward_backward(batch);
          base->Base::forward_backward(*ReadBatch(batch));
        });
  }

 protected:
  EvalMetric::NameValues validate(const FitArgs& args, const MetricArg& metric, int epoch) override {
    return step<EvalMetric::NameValues, false>(
        Overrides::score, [&](const nb::object& score) { return validate_by(score, args, metric, epoch); },
        [&](auto* base) { return base->Base::validate(args, metric, epoch); });
  }
  void bind_to(DataIter& train_data, const BindArgs& args) override {
    if (!defines(Overrides::bind)) return Base::bind_to(train_data, args);
    std::vector<DataDesc> data, label;
    try {
      data = train_data.provide_data();
      label = train_data.provide_label();
    } catch (const std::exception&) {
      AcquireGil acquire;
      if (!bind_by_python(in_python(Overrides::bind), train_data, args)) throw;
      return;
    }
    bind(data, label, args);
  }
  void update_metric_by(EvalMetric& metric, const DataBatch& batch) override {
    if (!has_only_source(batch)) return Base::update_metric_by(metric, batch);
    step<void>(
        Overrides::update_metric, [&](const nb::object& method) { update_metric_by_python(method, metric, batch); },
        [&](auto* base) { base->Base::update_metric(metric, read_label(batch), false); });
  }
  std::optional<int64_t> num_samples(const DataBatch& batch) const override {
    if (has_only_source(batch) || (abstract && !defines(Overrides::data_shapes))) return std::nullopt;
    return Base::num_samples(batch);
  }
  bool has_own_passes() const override {
    return !abstract && !defines(Overrides::forward) && !defines(Overrides::backward);
  }

 private:
  // With the GIL held: what Python defines, or an invalid object.
  nb::object in_python(Overrides::Name name) const {
    const nb::object self = nb::find(static_cast<const Base*>(this));
    return self.is_valid() ? overrides_.find(self, nb::type<Base>(), name) : nb::object();
  }
  bool defines(Overrides::Name name) const {
    if (overrides_.known_missing(name)) return false;
    AcquireGil acquire;
    return in_python(name).is_valid();
  }

  // What Python defines, or what the base class does. A step without a base (required) fails where Python has none.
  template <class Result, bool required = abstract, class RunFound, class InBase>
  Result step(Overrides::Name name, RunFound run_found, InBase in_base) const {
    if (!overrides_.known_missing(name)) {
      AcquireGil acquire;
      if (const nb::object found = in_python(name); found.is_valid()) return run_found(found);
    }
    if constexpr (required)
      fail("[BaseModule] this class of module does not define ", Overrides::text(name));
    else
      return in_base(const_cast<PythonModule*>(this));
  }

  Overrides overrides_;
  mutable std::unique_ptr<Symbol> symbol_;
};

}  // namespace symbind::python
