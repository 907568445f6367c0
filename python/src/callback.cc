#include "callback.h"

#include <algorithm>
#include <cmath>

#include "symbind/train/base_module.h"

#include "batch.h"
#include "bindings.h"
#include "convert.h"
#include "data.h"
#include "metric.h"

namespace symbind::python {
namespace {

// Functions of C++ that Python holds: what do_checkpoint and the like return.
struct BatchFunction {
  BatchEndCallback function;
};
struct EpochFunction {
  EpochEndCallback function;
};

nb::handle stop_training;  // the exception's type; set once, and never released

// Calls a Python callback: its StopTraining becomes that of C++, which fit handles.
template <class Call>
void call_python(Call&& call) {
  try {
    call();
  } catch (nb::python_error& error) {
    if (!error.matches(stop_training)) throw;
    const std::string reason = nb::str(error.value()).c_str();
    throw reason.empty() ? StopTraining() : StopTraining(reason);
  }
}

// A BatchEndParam from any object with its attributes, with the metric that it refers to.
struct GivenParam {
  EvalMetricPtr metric;
  BatchEndParam param;
};

int64_t number_of(nb::handle param, const char* name) {
  return nb::cast<int64_t>(nb::int_(nb::object(param.attr(name))));
}

GivenParam param_from(nb::handle value) {
  GivenParam given;
  given.param.epoch = static_cast<int>(number_of(value, "epoch"));
  given.param.nbatch = number_of(value, "nbatch");
  if (const nb::object metric = value.attr("eval_metric"); !metric.is_none()) given.metric = metric_from(metric);
  given.param.eval_metric = given.metric.get();
  return given;
}

template <class Callback>
void call_batch_end(Callback& callback, nb::handle value) {
  const GivenParam given = param_from(value);
  ReleaseGil release;
  callback(given.param);
}

// Null for a local without a Python counterpart.
nb::object local_to_python(const std::any& value) {
  const auto as = [&]<class T>(std::type_identity<T>) { return std::any_cast<T>(&value); };
  if (const auto* held = as(std::type_identity<nb::object>())) return *held;
  if (const auto* held = as(std::type_identity<Held>())) return held->get();
  if (const auto* number = as(std::type_identity<int>())) return nb::int_(*number);
  if (const auto* number = as(std::type_identity<int64_t>())) return nb::int_(*number);
  if (const auto* number = as(std::type_identity<double>())) return nb::float_(*number);
  if (const auto* truth = as(std::type_identity<bool>())) return nb::bool_(*truth);
  if (const auto* text = as(std::type_identity<std::string>())) return nb::cast(*text);
  if (const auto* batch = as(std::type_identity<const DataBatch*>()))
    return *batch ? batch_to_python(**batch) : nb::none();
  if (const auto* iter = as(std::type_identity<DataIter*>())) return iter_to_python(*iter);
  if (const auto* metric = as(std::type_identity<EvalMetric*>())) return metric_to_python(*metric);
  if (const auto* module = as(std::type_identity<BaseModule*>())) {
    if (!*module) return nb::none();
    return nb::find(*module);
  }
  return {};
}

// A module: any object with save_checkpoint.
struct ModuleOfPython {
  Held object;
  void save_checkpoint(const std::string& prefix, int epoch, bool save_optimizer_states) {
    AcquireGil acquire;
    object.get().attr("save_checkpoint")(prefix, epoch, save_optimizer_states);
  }
};

// Numbers of batches or epochs that a script divided may be floats.
int64_t whole(double count) {
  if (!(std::abs(count) <= 1e15)) throw ValueError(join("expected a number of batches or epochs, not ", count));
  return static_cast<int64_t>(count);
}
int period_of(double count) { return static_cast<int>(std::clamp<int64_t>(whole(count), 1, 1 << 30)); }

nb::object checkpoint_of_module(nb::object mod, const std::string& prefix, double period, Truth save_optimizer_states) {
  auto module = std::make_shared<ModuleOfPython>(Held(std::move(mod)));
  nb::object callback = nb::cast(
      EpochFunction{[module, save = module_checkpoint(*module, prefix, period_of(period), save_optimizer_states)](
                        int epoch, const Symbol& symbol, const NamedArrays& arg_params, const NamedArrays& aux_params) {
        save(epoch, symbol, arg_params, aux_params);
      }});
  module->object.keep_in(callback);
  return callback;
}

SaveBest save_best(nb::object mod, const std::string& prefix, const BestOf& options, bool save_optimizer_states,
                   nb::handle keeper) {
  auto module = std::make_shared<ModuleOfPython>(Held(std::move(mod), keeper));
  return {[module, prefix, save_optimizer_states] { module->save_checkpoint(prefix, 0, save_optimizer_states); },
          prefix, options};
}

BestOf best_of(std::optional<std::string> metric, std::string mode, double min_delta) {
  return {std::move(metric).value_or(""), std::move(mode), min_delta};
}

// Its best value and the epoch of that, None until there is one.
template <class Callback>
void def_best(nb::class_<Callback>& type) {
  type.def_prop_ro("best_value", [](const Callback& self) { return self.best().value(); })
      .def_prop_ro("best_epoch", [](const Callback& self) -> std::optional<int> {
        return self.best().value() ? std::optional(self.best().epoch()) : std::nullopt;
      });
}

void bind_validation_callbacks(nb::module_& m) {
  const nb::exception<StopTraining> stop(m, "StopTraining");
  stop.attr("__doc__") =
      "Raised by a callback to end fit, with the reason for the log; the other callbacks of the event still run.";
  stop_training = nb::object(m.attr("StopTraining")).release();
  nb::class_<EarlyStopping> stopping(
      m, "EarlyStopping", nb::dynamic_attr(),
      "As eval_end_callback: stops training when `patience` validations in a row were not better than the best before "
      "them. `metric` is the name of the value that counts (None: the first), `mode` is 'max', 'min' or 'auto' (by the "
      "name); a change by no more than min_delta is no improvement.");
  stopping
      .def(
          "__init__",
          [](EarlyStopping* self, int patience, std::optional<std::string> metric, std::string mode, double min_delta) {
            new (self) EarlyStopping(patience, best_of(std::move(metric), std::move(mode), min_delta));
          },
          nb::arg("patience"), nb::arg("metric").none() = nb::none(), nb::arg("mode") = "auto",
          nb::arg("min_delta") = 0.0)
      .def("__call__", &call_batch_end<EarlyStopping>, nb::arg("param"))
      .def_prop_ro("waited", &EarlyStopping::waited, "Validations since the best one.");
  def_best(stopping);
  nb::class_<SaveBest> best(
      m, "SaveBest", nb::dynamic_attr(), nb::type_slots(collector_slots),
      "As eval_end_callback: saves the module by mod.save_checkpoint(prefix, 0) whenever its validation is the best so "
      "far. `metric`, `mode` and `min_delta` as for EarlyStopping.");
  best.def(
          "__init__",
          [](nb::pointer_and_handle<SaveBest> self, nb::object mod, const std::string& prefix,
             std::optional<std::string> metric, std::string mode, double min_delta, bool save_optimizer_states) {
            new (self.p)
                SaveBest(save_best(std::move(mod), prefix, best_of(std::move(metric), std::move(mode), min_delta),
                                   save_optimizer_states, self.h));
          },
          nb::arg("mod"), nb::arg("prefix"), nb::arg("metric").none() = nb::none(), nb::arg("mode") = "auto",
          nb::arg("min_delta") = 0.0, nb::arg("save_optimizer_states") = false)
      .def("__call__", &call_batch_end<SaveBest>, nb::arg("param"));
  def_best(best);
}

void call_epoch_end(const EpochFunction& self, int iter_no, nb::handle sym, nb::handle arg, nb::handle aux) {
  static const Symbol none = Symbol::variable("none");  // for calls of module_checkpoint without a symbol
  const Symbol symbol = sym.is_none() ? none : nb::cast<Symbol>(sym);
  const NamedArrays arg_params = named_arrays_from(arg), aux_params = named_arrays_from(aux);
  ReleaseGil release;
  self.function(iter_no, symbol, arg_params, aux_params);
}

[[noreturn]] void not_callable(nb::handle value) {
  throw TypeError(join("a callback must be callable: ", nb::repr(value).c_str(), " is not"));
}

// A callback object of exactly this class; a subclass may have overridden anything.
template <class Native>
bool is_exactly(nb::handle value) {
  return value.type().is(nb::type<Native>());
}

template <class Native>
BatchEndCallback native_callback(nb::handle value) {
  return [callback = nb::cast<std::shared_ptr<Native>>(value)](const BatchEndParam& param) { (*callback)(param); };
}

template <class Function>
auto each_of(nb::handle value, Function convert) {
  std::vector<decltype(convert(value))> all;
  if (value.is_none()) return all;
  if (PyList_Check(value.ptr()) || PyTuple_Check(value.ptr())) {
    for (nb::handle item : value) all.push_back(convert(item));
  } else {
    all.push_back(convert(value));
  }
  return all;
}

}  // namespace

nb::object param_to_python(const BatchEndParam& param) {
  static const nb::handle type = nb::object(nb::module_::import_("symbind.model").attr("BatchEndParam")).release();
  nb::dict locals;
  for (const auto& [name, value] : param.locals) {
    const nb::object object = local_to_python(value);
    if (object.is_valid()) locals[name.c_str()] = object;
  }
  return type(param.epoch, param.nbatch, metric_to_python(param.eval_metric), locals);
}

BatchEndCallback batch_callback_from(nb::handle value) {
  if (is_exactly<Speedometer>(value)) return native_callback<Speedometer>(value);
  if (is_exactly<ProgressBar>(value)) return native_callback<ProgressBar>(value);
  if (is_exactly<LogValidationMetricsCallback>(value)) return native_callback<LogValidationMetricsCallback>(value);
  if (is_exactly<EarlyStopping>(value)) return native_callback<EarlyStopping>(value);
  if (is_exactly<SaveBest>(value)) return native_callback<SaveBest>(value);
  if (is_exactly<BatchFunction>(value)) return nb::cast<BatchFunction&>(value).function;
  if (!PyCallable_Check(value.ptr())) not_callable(value);
  return [function = Held(nb::borrow(value))](const BatchEndParam& param) {
    AcquireGil acquire;
    call_python([&] { function.get()(param_to_python(param)); });
  };
}

EpochEndCallback epoch_callback_from(nb::handle value) {
  if (is_exactly<EpochFunction>(value)) return nb::cast<EpochFunction&>(value).function;
  if (!PyCallable_Check(value.ptr())) not_callable(value);
  return [function = Held(nb::borrow(value))](int epoch, const Symbol& symbol, const NamedArrays& arg_params,
                                              const NamedArrays& aux_params) {
    AcquireGil acquire;
    call_python([&] {
      const nb::object network = &symbol == &no_symbol() ? nb::none() : nb::cast(symbol);
      function.get()(epoch, network, dict_of(arg_params), dict_of(aux_params));
    });
  };
}

std::vector<BatchEndCallback> batch_callbacks_from(nb::handle value) { return each_of(value, batch_callback_from); }
std::vector<EpochEndCallback> epoch_callbacks_from(nb::handle value) { return each_of(value, epoch_callback_from); }

void bind_callback(nb::module_& m) {
  bind_validation_callbacks(m);
  nb::class_<Speedometer>(m, "Speedometer", nb::dynamic_attr(),
                          "Logs speed and metrics every `frequent` batches; with auto_reset, those since the line "
                          "before.")
      .def(
          "__init__",
          [](nb::pointer_and_handle<Speedometer> self, double batch_size, double frequent, Truth auto_reset) {
            new (self.p) Speedometer(whole(batch_size), whole(frequent), auto_reset);
            self.h.attr("batch_size") = whole(batch_size);
            self.h.attr("frequent") = whole(frequent);
            self.h.attr("auto_reset") = auto_reset.value;
            // For a subclass whose __call__ measures the time itself.
            self.h.attr("init") = false;
            self.h.attr("tic") = 0;
            self.h.attr("last_count") = 0;
          },
          nb::arg("batch_size"), nb::arg("frequent") = 50, nb::arg("auto_reset") = true)
      .def("__call__", &call_batch_end<Speedometer>, nb::arg("param"));
  nb::class_<ProgressBar>(m, "ProgressBar", nb::dynamic_attr(), "Logs how much of `total` batches is done.")
      .def(
          "__init__",
          [](nb::pointer_and_handle<ProgressBar> self, double total, double length) {
            new (self.p) ProgressBar(whole(std::ceil(total)), whole(length));
            self.h.attr("total") = whole(std::ceil(total));
            self.h.attr("bar_len") = whole(length);
          },
          nb::arg("total"), nb::arg("length") = 80)
      .def("__call__", &call_batch_end<ProgressBar>, nb::arg("param"));
  nb::class_<LogValidationMetricsCallback>(m, "LogValidationMetricsCallback", nb::dynamic_attr(),
                                           "Logs the metrics at the end of a validation.")
      .def(nb::init<>())
      .def("__call__", &call_batch_end<const LogValidationMetricsCallback>, nb::arg("param"));
  nb::class_<BatchFunction>(m, "BatchCallback", "A function to call after batches.")
      .def(
          "__call__", [](const BatchFunction& self, nb::handle param) { call_batch_end(self.function, param); },
          nb::arg("param"));
  nb::class_<EpochFunction>(m, "EpochCallback", nb::type_slots(collector_slots), nb::is_weak_referenceable(),
                            "A function to call after epochs.")
      .def("__call__", &call_epoch_end, nb::arg("iter_no"), nb::arg("sym").none() = nb::none(),
           nb::arg("arg").none() = nb::none(), nb::arg("aux").none() = nb::none());
  m.def(
      "log_train_metric",
      [](double period, Truth auto_reset) { return BatchFunction{log_train_metric(whole(period), auto_reset)}; },
      nb::arg("period"), nb::arg("auto_reset") = false,
      "Logs the metrics every `period` batches; with auto_reset they are then reset.");
  m.def(
      "do_checkpoint",
      [](const std::string& prefix, double period) { return EpochFunction{do_checkpoint(prefix, period_of(period))}; },
      nb::arg("prefix"), nb::arg("period") = 1,
      "Saves the network and its parameters every `period` epochs: prefix-symbol.json and prefix-0001.params.");
  m.def("module_checkpoint", &checkpoint_of_module, nb::arg("mod"), nb::arg("prefix"), nb::arg("period") = 1,
        nb::arg("save_optimizer_states") = false, "The same through mod.save_checkpoint.");
}

}  // namespace symbind::python
