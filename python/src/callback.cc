#include "callback.h"

#include "symbind/train/base_module.h"

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

// A BatchEndParam of whatever has its attributes, with the metric that it points at.
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

// Null for a local that Python has no word for.
nb::object local_to_python(const std::any& value) {
  const auto as = [&]<class T>(std::type_identity<T>) { return std::any_cast<T>(&value); };
  if (const auto* held = as(std::type_identity<nb::object>())) return *held;
  if (const auto* held = as(std::type_identity<Callable>())) return held->get();
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

// Of a module that is whatever has save_checkpoint.
struct ModuleOfPython {
  Callable object;
  void save_checkpoint(const std::string& prefix, int epoch, bool save_optimizer_states) {
    AcquireGil acquire;
    object.get().attr("save_checkpoint")(prefix, epoch, save_optimizer_states);
  }
};

EpochFunction checkpoint_of_module(nb::object mod, const std::string& prefix, int period, bool save_optimizer_states) {
  auto module = std::make_shared<ModuleOfPython>(Callable(std::move(mod)));
  return {[module, save = module_checkpoint(*module, prefix, period, save_optimizer_states)](
              int epoch, const Symbol& symbol, const NamedArrays& arg_params, const NamedArrays& aux_params) {
    save(epoch, symbol, arg_params, aux_params);
  }};
}

void call_epoch_end(const EpochFunction& self, int iter_no, nb::handle sym, nb::handle arg, nb::handle aux) {
  static const Symbol none = Symbol::variable("none");  // for those who call module_checkpoint with what is at hand
  const Symbol symbol = sym.is_none() ? none : nb::cast<Symbol>(sym);
  const NamedArrays arg_params = named_arrays_from(arg), aux_params = named_arrays_from(aux);
  ReleaseGil release;
  self.function(iter_no, symbol, arg_params, aux_params);
}

[[noreturn]] void not_callable(nb::handle value) {
  throw nb::type_error(join("a callback must be callable: ", nb::repr(value).c_str(), " is not").c_str());
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
  if (is_exactly<BatchFunction>(value)) return nb::cast<BatchFunction&>(value).function;
  if (!PyCallable_Check(value.ptr())) not_callable(value);
  return [function = Callable(nb::borrow(value))](const BatchEndParam& param) {
    AcquireGil acquire;
    function.get()(param_to_python(param));
  };
}

EpochEndCallback epoch_callback_from(nb::handle value) {
  if (is_exactly<EpochFunction>(value)) return nb::cast<EpochFunction&>(value).function;
  if (!PyCallable_Check(value.ptr())) not_callable(value);
  return [function = Callable(nb::borrow(value))](int epoch, const Symbol& symbol, const NamedArrays& arg_params,
                                                  const NamedArrays& aux_params) {
    AcquireGil acquire;
    function.get()(epoch, symbol, dict_of(arg_params), dict_of(aux_params));
  };
}

std::vector<BatchEndCallback> batch_callbacks_from(nb::handle value) { return each_of(value, batch_callback_from); }
std::vector<EpochEndCallback> epoch_callbacks_from(nb::handle value) { return each_of(value, epoch_callback_from); }

void bind_callback(nb::module_& m) {
  nb::class_<Speedometer>(m, "Speedometer", nb::dynamic_attr(),
                          "Logs speed and metrics every `frequent` batches; with auto_reset, those since the line "
                          "before.")
      .def(
          "__init__",
          [](nb::pointer_and_handle<Speedometer> self, int64_t batch_size, int64_t frequent, bool auto_reset) {
            new (self.p) Speedometer(batch_size, frequent, auto_reset);
            self.h.attr("batch_size") = batch_size;
            self.h.attr("frequent") = frequent;
            self.h.attr("auto_reset") = auto_reset;
          },
          nb::arg("batch_size"), nb::arg("frequent") = 50, nb::arg("auto_reset") = true)
      .def("__call__", &call_batch_end<Speedometer>, nb::arg("param"));
  nb::class_<ProgressBar>(m, "ProgressBar", nb::dynamic_attr(), "Logs how much of `total` batches is done.")
      .def(nb::init<int64_t, int64_t>(), nb::arg("total"), nb::arg("length") = 80)
      .def("__call__", &call_batch_end<ProgressBar>, nb::arg("param"));
  nb::class_<LogValidationMetricsCallback>(m, "LogValidationMetricsCallback", nb::dynamic_attr(),
                                           "Logs the metrics at the end of a validation.")
      .def(nb::init<>())
      .def("__call__", &call_batch_end<const LogValidationMetricsCallback>, nb::arg("param"));
  nb::class_<BatchFunction>(m, "BatchCallback", "A function to call after batches.")
      .def(
          "__call__", [](const BatchFunction& self, nb::handle param) { call_batch_end(self.function, param); },
          nb::arg("param"));
  nb::class_<EpochFunction>(m, "EpochCallback", "A function to call after epochs.")
      .def("__call__", &call_epoch_end, nb::arg("iter_no"), nb::arg("sym").none() = nb::none(),
           nb::arg("arg").none() = nb::none(), nb::arg("aux").none() = nb::none());
  m.def(
      "log_train_metric",
      [](int64_t period, bool auto_reset) { return BatchFunction{log_train_metric(period, auto_reset)}; },
      nb::arg("period"), nb::arg("auto_reset") = false,
      "Logs the metrics every `period` batches; with auto_reset they then begin anew.");
  m.def(
      "do_checkpoint",
      [](const std::string& prefix, int period) { return EpochFunction{do_checkpoint(prefix, period)}; },
      nb::arg("prefix"), nb::arg("period") = 1,
      "Saves the network and its parameters every `period` epochs: prefix-symbol.json and prefix-0001.params.");
  m.def("module_checkpoint", &checkpoint_of_module, nb::arg("mod"), nb::arg("prefix"), nb::arg("period") = 1,
        nb::arg("save_optimizer_states") = false, "The same through mod.save_checkpoint.");
}

}  // namespace symbind::python
