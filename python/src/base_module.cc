#include "symbind/train/base_module.h"

#include "symbind/core/interrupt.h"
#include "symbind/train/bucketing.h"
#include "symbind/train/module.h"

#include "batch.h"
#include "bindings.h"
#include "callback.h"
#include "data.h"
#include "initializer.h"
#include "kvstore.h"
#include "log.h"
#include "metric.h"
#include "optimizer.h"
#include "python_module.h"

namespace symbind::python {

// ---- steps written in Python ---------------------------------------------------------------------------------------

const char* Overrides::text(Name name) {
  static constexpr std::array<const char*, count> texts = {"symbol",           "data_names",
                                                           "label_names",      "output_names",
                                                           "data_shapes",      "label_shapes",
                                                           "output_shapes",    "bind",
                                                           "init_params",      "init_optimizer",
                                                           "get_params",       "set_params",
                                                           "prepare",          "forward",
                                                           "backward",         "update",
                                                           "get_outputs",      "get_input_grads",
                                                           "update_metric",    "install_monitor",
                                                           "forward_backward", "score"};
  return texts[name];
}

nb::object Overrides::find(nb::handle self, nb::handle base, Name name) const {
  if (found_[name] == Found::no) return {};
  if (found_[name] == Found::unknown) {
    const nb::object own = nb::getattr(self.type(), text(name), nb::none());
    const nb::object inherited = nb::getattr(base, text(name), nb::none());
    // On the object, or on our own class: functions of Python are not among those that it is bound with.
    const bool replaced =
        PyFunction_Check(own.ptr()) ||
        (nb::hasattr(self, "__dict__") && nb::cast<nb::dict>(self.attr("__dict__")).contains(text(name)));
    found_[name] = !replaced && (own.is_none() || own.is(inherited)) ? Found::no : Found::yes;
    if (found_[name] == Found::no) return {};
  }
  return nb::getattr(self, text(name));
}

void look_again(const BaseModule& module) {
  if (const auto* looks = dynamic_cast<const LooksForOverrides*>(&module)) looks->look_again();
}

bool is_given_batches(const BaseModule& module) {
  const auto* looks = dynamic_cast<const LooksForOverrides*>(&module);
  return looks && looks->is_given_batches();
}

DataBatch batch_for(const BaseModule& module, nb::handle batch) {
  const auto* looks = dynamic_cast<const LooksForOverrides*>(&module);
  return looks && looks->forward_is_in_python() ? batch_for_python(batch) : batch_from(batch);
}

void update_metric_by_python(const nb::object& method, EvalMetric& metric, const DataBatch& batch) {
  const nb::object source = batch_to_python(batch);
  if (!PyList_Check(source.ptr())) {
    method(metric_to_python(&metric), nb::getattr(source, "label", nb::none()));
    return;
  }
  nb::list labels;  // of each device
  for (nb::handle part : source) labels.append(nb::object(part.attr("label")));
  method(metric_to_python(&metric), labels, nb::arg("pre_sliced") = true);
}

bool bind_by_python(const nb::object& method, DataIter& train_data, const BindArgs& args) {
  const nb::object data = described_by_python(train_data, "provide_data");
  if (!data.is_valid()) return false;
  nb::dict arguments = arguments_of(args);
  arguments["data_shapes"] = data;
  arguments["label_shapes"] = described_by_python(train_data, "provide_label");
  method(**arguments);
  return true;
}

OptimizerArg optimizer_arg_from(nb::handle value, nb::handle keeper) {
  if (nb::isinstance<nb::str>(value)) return nb::cast<std::string>(value);
  return optimizer_from(value, keeper);
}

nb::handle keeper_of_optimizer(nb::handle module, nb::handle kvstore) {
  return nb::isinstance<KVStore>(kvstore) ? keeper_of(kvstore) : module;
}

nb::object module_to_python(BaseModule* module) {
  return module ? nb::cast(module, nb::rv_policy::reference) : nb::none();
}

nb::dict arguments_of(const BindArgs& args) {
  nb::dict dict;
  dict["for_training"] = args.for_training;
  dict["force_rebind"] = args.force_rebind;
  if (args.inputs_need_grad) dict["inputs_need_grad"] = true;
  if (args.shared_module) dict["shared_module"] = module_to_python(args.shared_module);
  return dict;
}

nb::dict arguments_of(const InitParamsArgs& args) {
  nb::dict dict;
  dict["initializer"] = args.initializer ? nb::cast(std::const_pointer_cast<Initializer>(args.initializer))
                                         : nb::module_::import_("symbind.initializer").attr("Uniform")(0.01);
  dict["arg_params"] = args.arg_params ? nb::object(dict_of(*args.arg_params)) : nb::none();
  dict["aux_params"] = args.aux_params ? nb::object(dict_of(*args.aux_params)) : nb::none();
  dict["allow_missing"] = args.allow_missing;
  dict["force_init"] = args.force_init;
  if (args.allow_extra) dict["allow_extra"] = true;
  return dict;
}

nb::dict arguments_of(const InitOptimizerArgs& args) {
  nb::dict dict;
  dict["kvstore"] = args.kvstore.store()          ? to_python(args.kvstore.store())
                    : args.kvstore.type().empty() ? nb::none()
                                                  : nb::cast(args.kvstore.type());
  dict["optimizer"] =
      args.optimizer.optimizer() ? to_python(args.optimizer.optimizer()) : nb::cast(args.optimizer.name());
  dict["optimizer_params"] = optimizer_params_to_python(args.optimizer_params);
  if (args.force_init) dict["force_init"] = true;
  return dict;
}

std::vector<std::pair<std::string, Shape>> output_shapes_from(nb::handle value) {
  std::vector<std::pair<std::string, Shape>> shapes;
  for (nb::handle item : value) {
    const DataDesc desc = desc_from(item);
    shapes.emplace_back(desc.name, desc.shape);
  }
  return shapes;
}

BaseModule::Params params_from(nb::handle value) {
  const auto pair = nb::cast<std::pair<nb::object, nb::object>>(value);
  return {named_arrays_from(pair.first), named_arrays_from(pair.second)};
}

namespace {

// The callbacks for validation that the innermost fit() on this thread was given.
struct ValidationCallbacks {
  nb::handle batch_end, end;
};
thread_local const ValidationCallbacks* validation_callbacks = nullptr;

class ValidationScope {
 public:
  explicit ValidationScope(const ValidationCallbacks& callbacks)
      : before_(std::exchange(validation_callbacks, &callbacks)) {}
  ~ValidationScope() { validation_callbacks = before_; }
  ValidationScope(const ValidationScope&) = delete;
  ValidationScope& operator=(const ValidationScope&) = delete;

 private:
  const ValidationCallbacks* const before_;
};

}  // namespace

EvalMetric::NameValues validate_by(const nb::object& score, const FitArgs& args, const MetricArg& metric, int epoch) {
  const nb::object values =
      score(iter_to_python(args.eval_data), metric_to_python(metric.get().get()),
            nb::arg("score_end_callback") = validation_callbacks->end,
            nb::arg("batch_end_callback") = validation_callbacks->batch_end, nb::arg("epoch") = epoch);
  EvalMetric::NameValues named;
  if (values.is_none()) return named;
  for (nb::handle each : values) {
    const auto [name, value] = nb::cast<std::pair<nb::object, nb::object>>(each);
    named.emplace_back(nb::cast<std::string>(nb::str(name)), nb::cast<double>(nb::float_(value)));
  }
  return named;
}

nb::object logger_of(nb::handle self) { return nb::getattr(self, "logger", nb::none()); }

std::optional<NamedArrays> optional_arrays(nb::handle value) {
  if (value.is_none()) return std::nullopt;
  return named_arrays_from(value);
}

namespace {

// ---- what Python calls ---------------------------------------------------------------------------------------------

// A class in Python that overrides a step from forward_backward to update may change gradients or arrays there; one
// that overrides a later step finds the parameters updated there.
Overlaps overlaps_of(nb::handle self, const BaseModule& module) {
  nb::handle base;
  if (dynamic_cast<const Module*>(&module)) base = nb::type<Module>();
  if (dynamic_cast<const BucketingModule*>(&module)) base = nb::type<BucketingModule>();
  if (!base.is_valid()) return Overlaps::none;
  const Overrides overrides;
  const auto is_in_python = [&](Overrides::Name step) { return overrides.find(self, base, step).is_valid(); };
  for (const auto step : {Overrides::backward, Overrides::update, Overrides::forward_backward})
    if (is_in_python(step)) return Overlaps::none;
  const bool is_last = is_in_python(Overrides::update_metric) || is_in_python(Overrides::prepare);
  return is_last ? Overlaps::update : Overlaps::update_and_metric;
}

void fit(nb::handle self, nb::handle train_data, nb::handle eval_data, nb::handle eval_metric,
         nb::handle epoch_end_callback, nb::handle batch_end_callback, nb::handle kvstore, nb::handle optimizer,
         nb::handle optimizer_params, nb::handle eval_end_callback, nb::handle eval_batch_end_callback,
         nb::handle initializer, nb::handle arg_params, nb::handle aux_params, Truth allow_missing, Truth force_rebind,
         Truth force_init, int begin_epoch, std::optional<int> num_epoch, nb::handle validation_metric,
         nb::handle monitor, nb::handle, nb::handle compute_dtype) {
  if (!num_epoch) throw ValueError("fit needs num_epoch, the number of epochs");
  auto& module = nb::cast<BaseModule&>(self);
  look_again(module);
  const bool for_python = is_given_batches(module);
  const auto training = iter_from(train_data, "train_data", {}, for_python);
  const nb::handle keeper = keeper_of_optimizer(self, kvstore);
  const auto evaluation = eval_data.is_none() ? nullptr : iter_from(eval_data, "eval_data", {}, for_python);
  const auto watching = monitor.is_none() ? nullptr : monitor_from(monitor, keeper_of(self));
  FitArgs args{
      .eval_data = evaluation.get(),
      .eval_metric = metric_from(eval_metric),
      .epoch_end_callback = epoch_callbacks_from(epoch_end_callback),
      .batch_end_callback = batch_callbacks_from(batch_end_callback),
      .kvstore = kvstore_from(kvstore, self),
      .optimizer = optimizer_arg_from(optimizer, keeper),
      .optimizer_params = optimizer_params_from(optimizer_params, keeper),
      .eval_end_callback = batch_callbacks_from(eval_end_callback),
      .eval_batch_end_callback = batch_callbacks_from(eval_batch_end_callback),
      .initializer = initializer_from(initializer),
      .arg_params = optional_arrays(arg_params),
      .aux_params = optional_arrays(aux_params),
      .allow_missing = allow_missing,
      .force_rebind = force_rebind,
      .force_init = force_init,
      .begin_epoch = begin_epoch,
      .num_epoch = *num_epoch,
      .validation_metric = std::nullopt,
      .monitor = watching.get(),
      .compute_dtype = compute_dtype.is_none() ? DType::none : dtype_from(compute_dtype),
  };
  if (!validation_metric.is_none()) args.validation_metric = metric_from(validation_metric);
  const LoggerScope log(logger_of(self));
  const KeeperScope making(self);
  const AllowOverlaps overlaps(overlaps_of(self, module));
  const ValidationCallbacks callbacks{eval_batch_end_callback, eval_end_callback};
  const ValidationScope validation(callbacks);
  ReleaseGil release;
  module.fit(*training, args);
}

nb::list score(nb::handle self, nb::handle eval_data, nb::handle eval_metric, std::optional<int64_t> num_batch,
               nb::handle batch_end_callback, nb::handle score_end_callback, Truth reset, int epoch, nb::handle) {
  auto& module = nb::cast<BaseModule&>(self);
  look_again(module);
  const auto data = iter_from(eval_data, "eval_data", {}, is_given_batches(module));
  const EvalMetricPtr metric = metric_from(eval_metric);
  const ScoreArgs args{.num_batch = num_batch,
                       .batch_end_callback = batch_callbacks_from(batch_end_callback),
                       .score_end_callback = batch_callbacks_from(score_end_callback),
                       .reset = reset,
                       .epoch = epoch};
  const LoggerScope log(logger_of(self));
  const KeeperScope making(self);
  EvalMetric::NameValues values;
  {
    ReleaseGil release;
    values = module.score(*data, metric, args);
  }
  return list_of(values);
}

// A single output is returned itself, unless a list is always required.
nb::object outputs_to_python(const std::vector<NDArray>& outputs, Truth always_output_list) {
  if (outputs.size() == 1 && !always_output_list) return nb::cast(outputs[0]);
  return list_of(outputs);
}

nb::object predict(nb::handle self, nb::handle eval_data, std::optional<int64_t> num_batch, Truth merge_batches,
                   Truth reset, Truth always_output_list, nb::handle) {
  auto& module = nb::cast<BaseModule&>(self);
  const KeeperScope making(self);
  look_again(module);
  const bool numpy = nb::isinstance(eval_data, numpy_module().attr("ndarray"));
  if (numpy || nb::isinstance<NDArray>(eval_data)) {
    const NDArray data = array_from(eval_data, cpu());
    std::vector<NDArray> outputs;
    {
      ReleaseGil release;
      outputs = module.predict(data);
    }
    return outputs_to_python(outputs, always_output_list);
  }
  const auto data = iter_from(eval_data, "eval_data", {}, is_given_batches(module));
  const PredictArgs args{.num_batch = num_batch, .reset = reset};
  const LoggerScope log(logger_of(self));
  if (merge_batches) {
    std::vector<NDArray> outputs;
    {
      ReleaseGil release;
      outputs = module.predict(*data, args);
    }
    return outputs_to_python(outputs, always_output_list);
  }
  std::vector<std::vector<NDArray>> batches;
  {
    ReleaseGil release;
    module.iter_predict(
        *data,
        [&](const std::vector<NDArray>& outputs, int64_t, const DataBatch&) {
          batches.emplace_back();
          for (const NDArray& output : outputs) batches.back().push_back(output.copy());
        },
        args);
  }
  return list_of(batches);
}

// Python's view of PredictLoop; it keeps the module and the iterator alive.
class PythonPredictLoop {
 public:
  PythonPredictLoop(nb::handle self, nb::handle module, nb::handle eval_data, const PredictArgs& args)
      : module_(nb::borrow(module), self),
        data_(iter_from(eval_data, "eval_data", self, is_given_batches(*module_.as<BaseModule>()))),
        loop_(*module_.as<BaseModule>(), *data_, args) {}
  nb::object next() {
    std::optional<PredictLoop::Step> step;
    const KeeperScope making(module_.get());
    {
      ReleaseGil release;
      step = loop_.next();
    }
    if (!step) throw nb::stop_iteration();
    return nb::make_tuple(list_of(step->outputs), step->nbatch, batch_to_python(step->batch));
  }

 private:
  Held module_;
  std::shared_ptr<DataIter> data_;
  PredictLoop loop_;
};

}  // namespace

void bind_base_module(nb::module_& m) {
  set_interrupt_check([] {
    if (!Py_IsInitialized()) return;
    AcquireGil acquire;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
  });

  nb::class_<PythonPredictLoop>(m, "_PredictLoop", nb::type_slots(collector_slots), nb::is_weak_referenceable())
      .def("__init__",
           [](nb::pointer_and_handle<PythonPredictLoop> self, nb::handle module, nb::handle eval_data,
              std::optional<int64_t> num_batch, Truth reset) {
             new (self.p) PythonPredictLoop(self.h, module, eval_data, {.num_batch = num_batch, .reset = reset});
           })
      .def("__iter__", [](nb::handle self) { return nb::borrow(self); })
      .def("__next__", &PythonPredictLoop::next);

  nb::class_<BaseModule, PythonModule<BaseModule>> type(
      m, "BaseModule", nb::dynamic_attr(), nb::is_weak_referenceable(), nb::type_slots(collector_slots),
      "What every kind of module does. A user-defined class defines bind, forward, backward, update and so on; fit, "
      "score and predict are made of these.");
  type.def(
          "__init__",
          [](nb::pointer_and_handle<BaseModule> self, nb::object logger) {
            new (self.p) PythonModule<BaseModule>();
            if (!logger.is_none()) self.h.attr("logger") = logger;
          },
          nb::arg("logger").none() = nb::none())
      .def_rw("binded", &BaseModule::binded, "Whether bind() was called.")
      .def_rw("for_training", &BaseModule::for_training, "Whether the module is bound for training.")
      .def_rw("inputs_need_grad", &BaseModule::inputs_need_grad,
              "Whether gradients with respect to the inputs are computed.")
      .def_rw("params_initialized", &BaseModule::params_initialized, "Whether the parameters have values.")
      .def_rw("optimizer_initialized", &BaseModule::optimizer_initialized, "Whether init_optimizer() was called.")
      .def("fit", &fit, nb::arg("train_data"), nb::arg("eval_data").none() = nb::none(),
           nb::arg("eval_metric").none() = "acc", nb::arg("epoch_end_callback").none() = nb::none(),
           nb::arg("batch_end_callback").none() = nb::none(), nb::arg("kvstore").none() = "local",
           nb::arg("optimizer") = "sgd",
           nb::arg("optimizer_params").none() = nb::make_tuple(nb::make_tuple("learning_rate", 0.01)),
           nb::arg("eval_end_callback").none() = nb::none(), nb::arg("eval_batch_end_callback").none() = nb::none(),
           nb::arg("initializer").none() = nb::none(), nb::arg("arg_params").none() = nb::none(),
           nb::arg("aux_params").none() = nb::none(), nb::arg("allow_missing") = false, nb::arg("force_rebind") = false,
           nb::arg("force_init") = false, nb::arg("begin_epoch") = 0, nb::arg("num_epoch").none() = nb::none(),
           nb::arg("validation_metric").none() = nb::none(), nb::arg("monitor").none() = nb::none(),
           nb::arg("sparse_row_id_fn").none() = nb::none(), nb::arg("compute_dtype").none() = nb::none(),
           "Trains for the epochs from begin_epoch to num_epoch. compute_dtype: \"float16\" or \"bfloat16\" for a "
           "float32 network that computes in this type where that is safe; a bound module needs force_rebind for "
           "another type.")
      .def("score", &score, nb::arg("eval_data"), nb::arg("eval_metric"), nb::arg("num_batch").none() = nb::none(),
           nb::arg("batch_end_callback").none() = nb::none(), nb::arg("score_end_callback").none() = nb::none(),
           nb::arg("reset") = true, nb::arg("epoch") = 0, nb::arg("sparse_row_id_fn").none() = nb::none(),
           "Runs over eval_data; a list of names and values.")
      .def("predict", &predict, nb::arg("eval_data"), nb::arg("num_batch").none() = nb::none(),
           nb::arg("merge_batches") = true, nb::arg("reset") = true, nb::arg("always_output_list") = false,
           nb::arg("sparse_row_id_fn").none() = nb::none(),
           "The outputs over an iterator, or for an array; padding is cut off.")
      .def(
          "iter_predict",
          [](nb::handle self, nb::handle eval_data, std::optional<int64_t> num_batch, Truth reset, nb::handle) {
            return nb::type<PythonPredictLoop>()(self, eval_data, num_batch, reset);
          },
          nb::arg("eval_data"), nb::arg("num_batch").none() = nb::none(), nb::arg("reset") = true,
          nb::arg("sparse_row_id_fn").none() = nb::none(), "Batch by batch: (outputs, number, batch).")
      .def(
          "forward_backward",
          [](nb::pointer_and_handle<BaseModule> self, nb::handle data_batch) {
            const DataBatch batch = batch_for(*self.p, data_batch);
            const KeeperScope making(self.h);
            ReleaseGil release;
            self.p->BaseModule::forward_backward(batch);
          },
          nb::arg("data_batch"), "forward() in training mode, then backward().")
      .def(
          "set_params",
          [](BaseModule& self, nb::handle arg_params, nb::handle aux_params, Truth allow_missing, Truth force_init,
             Truth allow_extra) {
            self.BaseModule::set_params(named_arrays_from(arg_params), named_arrays_from(aux_params), allow_missing,
                                        force_init, allow_extra);
          },
          nb::arg("arg_params").none(), nb::arg("aux_params").none(), nb::arg("allow_missing") = false,
          nb::arg("force_init") = true, nb::arg("allow_extra") = false,
          "Sets parameters and auxiliary states; names that are missing fail unless allow_missing is set.")
      .def(
          "prepare", [](BaseModule&, nb::handle, nb::handle) {}, nb::arg("data_batch"),
          nb::arg("sparse_row_id_fn").none() = nb::none(), "Called before a batch is processed; does nothing here.")
      .def(
          "get_states", [](const BaseModule& self, Truth) { return list_of(self.BaseModule::get_states()); },
          nb::arg("merge_multi_context") = true, "The states: a list that is empty where a kind of module has none.")
      .def(
          "set_states",
          [](BaseModule& self, nb::handle states, std::optional<double> value) {
            self.BaseModule::set_states(states.is_none() ? std::vector<NDArray>{} : arrays_from(states));
            if (value.value_or(0) != 0) self.BaseModule::set_states(*value);
          },
          nb::arg("states").none() = nb::none(), nb::arg("value").none() = nb::none(),
          "Sets the states; a kind of module that has none refuses any.")
      .def("save_params", &BaseModule::save_params, nb::arg("fname"), "Writes the parameters to a file.")
      .def("load_params", &BaseModule::load_params, nb::arg("fname"), "Reads the parameters from a file.");
  for (const char* name : {"bind", "init_params", "init_optimizer", "get_params", "forward", "backward", "update",
                           "get_outputs", "get_input_grads", "update_metric", "install_monitor"})
    type.def(name, [name](BaseModule&, nb::args, nb::kwargs) -> nb::object {
      PyErr_Format(PyExc_NotImplementedError, "this class of module does not define %s", name);
      throw nb::python_error();
    });
  m.def(
      "_check_input_names",
      [](const Symbol& symbol, nb::handle names, const std::string& kind, bool strict) {
        try {
          check_input_names(symbol, names_from(names), kind, strict);
        } catch (const Error& error) {
          throw ValueError(error.what());
        }
      },
      nb::arg("symbol"), nb::arg("names").none(), nb::arg("typename"), nb::arg("throw"));
}

}  // namespace symbind::python
