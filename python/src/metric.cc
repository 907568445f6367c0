// The class EvalMetric of Python represents two kinds of object. An object of a C++ class has its sums in C++. One of a
// class written in Python has them in its own attributes, of any type (a list, an array): such classes assign
// sum_metric and num_inst freely, and often never call __init__. So the methods below take any object and check which
// kind it is.
#include "metric.h"

#include <set>

#include "symbind/train/metrics.h"

#include "bindings.h"
#include "convert.h"

namespace symbind::python {
namespace {

// An EvalMetric of no particular kind: the C++ part of classes written in Python.
class BareMetric final : public EvalMetric {
 public:
  using EvalMetric::EvalMetric;
  void update(const std::vector<NDArray>&, const std::vector<NDArray>&) override {
    fail("[EvalMetric] update is for subclasses to define");
  }
};

// The classes of C++; accessed with the GIL held.
std::set<PyObject*>& native_types() {
  static auto* types = new std::set<PyObject*>;
  return *types;
}

// Null if the sums are in Python attributes.
EvalMetric* native_of(nb::handle self) {
  if (!nb::isinstance<EvalMetric>(self) || !nb::inst_ready(self)) return nullptr;
  auto* metric = nb::cast<EvalMetric*>(self);
  return dynamic_cast<BareMetric*>(metric) ? nullptr : metric;
}

nb::object number_as(nb::handle type, nb::handle value) { return type(value); }
double float_of(nb::handle value) { return nb::cast<double>(number_as(nb::handle((PyObject*)&PyFloat_Type), value)); }
int64_t int_of(nb::handle value) { return nb::cast<int64_t>(number_as(nb::handle((PyObject*)&PyLong_Type), value)); }

nb::object names_or_none(const std::vector<std::string>& names) { return names.empty() ? nb::none() : nb::cast(names); }

// Arrays of NumPy's keep their type.
NDArray metric_array(nb::handle value) {
  if (nb::isinstance<NDArray>(value)) return nb::cast<NDArray>(value);
  const nb::object values = numpy_module().attr("asarray")(value);
  DType dtype = DType::float32;
  try {
    dtype = dtype_from(nb::object(values.attr("dtype")));
  } catch (const TypeError&) {  // a type that only NumPy has
  }
  NDArray array(Shape(dims_from(nb::object(values.attr("shape")))), cpu(), dtype);
  copy_from_numpy(array, values);
  return array;
}

std::vector<NDArray> metric_arrays(nb::handle value) {
  if (value.is_none()) return {};
  if (!PyList_Check(value.ptr()) && !PyTuple_Check(value.ptr())) return {metric_array(value)};
  std::vector<NDArray> arrays;
  for (nb::handle item : value) arrays.push_back(metric_array(item));
  return arrays;
}

NamedList named_list(nb::handle mapping) {
  NamedList list;
  for (nb::handle pair : nb::object(mapping.attr("items")()))
    list.emplace_back(nb::cast<std::string>(pair[0]), metric_array(nb::object(pair[1])));
  return list;
}

nb::dict dict_of_list(const NamedList& arrays) {
  nb::dict dict;
  for (const auto& [name, array] : arrays) dict[name.c_str()] = array_or_none(array);
  return dict;
}

nb::object mean(nb::handle sum, nb::handle instances) {
  const int empty = PyObject_RichCompareBool(instances.ptr(), nb::int_(0).ptr(), Py_EQ);
  if (empty < 0) throw nb::python_error();
  return empty ? nb::object(nb::float_(Py_NAN)) : nb::object(sum / instances);
}

nb::tuple tuple_of_values(const EvalMetric& metric, const EvalMetric::NameValues& values) {
  if (!dynamic_cast<const metric::Composite*>(&metric) && values.size() == 1)
    return nb::make_tuple(values[0].first, values[0].second);
  nb::list names, numbers;
  for (const auto& [name, value] : values) {
    names.append(name);
    numbers.append(value);
  }
  return nb::make_tuple(names, numbers);
}

// A metric whose methods are Python's.
class PythonMetric final : public EvalMetric {
 public:
  PythonMetric(nb::handle object, nb::handle keeper)
      : EvalMetric({class_name(object)}), object_(nb::borrow(object), keeper) {}

  nb::object object() const { return object_.get(); }
  void update(const std::vector<NDArray>& labels, const std::vector<NDArray>& preds) override {
    AcquireGil acquire;
    object_.get().attr("update")(python::list_of(labels), python::list_of(preds));
  }
  void update_dict(const NamedList& labels, const NamedList& preds) override {
    AcquireGil acquire;
    if (nb::hasattr(object_.get(), "update_dict")) {
      object_.get().attr("update_dict")(dict_of_list(labels), dict_of_list(preds));
    } else {
      EvalMetric::update_dict(labels, preds);
    }
  }
  void reset() override { call("reset"); }
  void reset_local() override { call("reset_local", "reset"); }
  NameValues get() const override { return values("get", "get"); }
  NameValues get_global() const override { return values("get_global", "get"); }

 private:
  void call(const char* method, const char* otherwise = nullptr) const {
    AcquireGil acquire;
    const bool has = !otherwise || nb::hasattr(object_.get(), method);
    object_.get().attr(has ? method : otherwise)();
  }
  NameValues values(const char* method, const char* otherwise) const {
    AcquireGil acquire;
    return name_values_from(object_.get().attr(nb::hasattr(object_.get(), method) ? method : otherwise)());
  }

  Held object_;
};

}  // namespace

// ---- across the border ----------------------------------------------------------------------------------------------

EvalMetricPtr metric_from(nb::handle value, nb::handle keeper) {
  if (native_types().contains(reinterpret_cast<PyObject*>(Py_TYPE(value.ptr()))) && nb::inst_ready(value))
    return Held(nb::borrow(value), keeper).as<EvalMetric>();
  const bool known = nb::isinstance<EvalMetric>(value) || (nb::hasattr(value, "update") && nb::hasattr(value, "get"));
  if (known && !PyType_Check(value.ptr()) && !nb::isinstance<nb::dict>(value))
    return std::make_shared<PythonMetric>(value, keeper);
  return metric_from(nb::object(nb::module_::import_("symbind.metric").attr("create")(value)), keeper);
}

nb::object metric_to_python(EvalMetric* metric) {
  if (!metric) return nb::none();
  if (const auto* python = dynamic_cast<PythonMetric*>(metric)) return python->object();
  return nb::cast(metric, nb::rv_policy::reference);  // the object it belongs to, where there is one
}

EvalMetric::NameValues name_values_from(nb::handle value) {
  // zip(*pairs), a list in Python 2, is an iterator now.
  const bool is_pair = PyTuple_Check(value.ptr()) || PyList_Check(value.ptr()) || PyIter_Check(value.ptr());
  if (!is_pair) throw TypeError(join("get() of a metric returns (name, value), not ", nb::repr(value).c_str()));
  const nb::tuple pair(nb::borrow(value));
  if (pair.size() != 2) throw ValueError(join("get() of a metric returns (name, value), not ", nb::repr(pair).c_str()));
  const nb::object names = pair[0], values = pair[1];
  if (!PyList_Check(names.ptr()) && !PyTuple_Check(names.ptr())) return {{nb::str(names).c_str(), float_of(values)}};
  EvalMetric::NameValues result;
  nb::object next = nb::iter(values);
  for (nb::handle name : names) {
    const nb::object number = nb::steal(PyIter_Next(next.ptr()));
    if (!number) break;
    result.emplace_back(nb::str(name).c_str(), float_of(number));
  }
  if (PyErr_Occurred()) throw nb::python_error();
  return result;
}

nb::list list_of(const EvalMetric::NameValues& values) {
  nb::list list;
  for (const auto& [name, value] : values) list.append(nb::make_tuple(name, value));
  return list;
}

// ---- EvalMetric -----------------------------------------------------------------------------------------------------

namespace {

// How many metrics it is: the second argument of MXNet before 1.0, which makes sum_metric and num_inst lists. 0: one,
// no lists.
constexpr const char* number_of_metrics_attribute = "_number_of_metrics";
size_t number_of_metrics(nb::handle self) {
  return nb::cast<size_t>(nb::getattr(self, number_of_metrics_attribute, nb::int_(0)));
}

nb::object get(nb::handle self) {
  if (const EvalMetric* native = native_of(self)) return tuple_of_values(*native, native->get());
  if (const size_t count = number_of_metrics(self); count > 0) {
    nb::list names, values;
    const nb::object sums = self.attr("sum_metric"), instances = self.attr("num_inst");
    const nb::object name = self.attr("name");
    for (size_t i = 0; i < count; ++i) {
      names.append(nb::isinstance<nb::list>(name) ? nb::object(name[i])
                                                  : nb::str(join(nb::str(name).c_str(), "_", i).c_str()));
      values.append(mean(nb::object(sums[i]), nb::object(instances[i])));
    }
    return nb::make_tuple(names, values);
  }
  return nb::make_tuple(nb::object(self.attr("name")), mean(self.attr("sum_metric"), self.attr("num_inst")));
}

bool has_global_stats(nb::handle self) {
  return nb::cast<bool>(nb::bool_(nb::object(nb::getattr(self, "_has_global_stats", nb::bool_(false)))));
}

nb::object get_global(nb::handle self) {
  if (const EvalMetric* native = native_of(self)) return tuple_of_values(*native, native->get_global());
  if (!has_global_stats(self)) return self.attr("get")();
  return nb::make_tuple(nb::object(self.attr("name")),
                        mean(self.attr("global_sum_metric"), self.attr("global_num_inst")));
}

// The result of get() as pairs.
nb::list pairs_of(nb::handle got) {
  const nb::tuple pair(nb::borrow(got));  // or an iterator over the two
  const nb::object names = pair[0], values = pair[1];
  nb::list list;
  if (!PyList_Check(names.ptr()) && !PyTuple_Check(names.ptr())) {
    list.append(nb::make_tuple(names, values));
    return list;
  }
  size_t i = 0;
  for (nb::handle name : names) list.append(nb::make_tuple(name, nb::object(values[i++])));
  return list;
}

void set_to_zero(nb::handle self, const char* sum, const char* instances) {
  self.attr(sum) = 0.0;
  self.attr(instances) = 0;
}

void set_local_to_zero(nb::handle self) {
  const size_t count = number_of_metrics(self);
  if (count == 0) return set_to_zero(self, "sum_metric", "num_inst");
  self.attr("sum_metric") = nb::cast(std::vector<double>(count));
  self.attr("num_inst") = nb::cast(std::vector<int64_t>(count));
}

void reset_local(nb::handle self) {
  if (EvalMetric* native = native_of(self)) return native->reset_local();
  // A class without local sums but with its own reset stores its numbers in its own form.
  const nb::handle base = nb::type<EvalMetric>();
  const bool own_reset = !nb::object(nb::handle(self.type()).attr("reset")).is(nb::object(base.attr("reset")));
  if (own_reset && !has_global_stats(self)) {
    self.attr("reset")();
  } else {
    set_local_to_zero(self);
  }
}

void reset(nb::handle self) {
  if (EvalMetric* native = native_of(self)) return native->reset();
  set_local_to_zero(self);
  set_to_zero(self, "global_sum_metric", "global_num_inst");
}

void update(nb::handle self, nb::handle labels, nb::handle preds) {
  EvalMetric* native = native_of(self);
  if (!native) {
    PyErr_Format(PyExc_NotImplementedError, "%s does not define update(labels, preds)", Py_TYPE(self.ptr())->tp_name);
    throw nb::python_error();
  }
  const std::vector<NDArray> label_arrays = metric_arrays(labels), pred_arrays = metric_arrays(preds);
  ReleaseGil release;
  native->update(label_arrays, pred_arrays);
}

void update_dict(nb::handle self, nb::handle label, nb::handle pred) {
  if (EvalMetric* native = native_of(self)) {
    const bool own_update = !native_types().contains(reinterpret_cast<PyObject*>(Py_TYPE(self.ptr())));
    if (!own_update) {
      const NamedList labels = named_list(label), preds = named_list(pred);
      ReleaseGil release;
      return native->update_dict(labels, preds);
    }
  }
  const auto chosen = [](nb::handle arrays, nb::handle names) {
    nb::list list;
    if (names.is_none()) {
      for (nb::handle array : nb::object(arrays.attr("values")())) list.append(array);
    } else {
      for (nb::handle name : names) list.append(nb::object(arrays[name]));
    }
    return list;
  };
  self.attr("update")(chosen(label, self.attr("label_names")), chosen(pred, self.attr("output_names")));
}

nb::dict get_config(nb::handle self) {
  nb::dict config;
  const nb::object extra = nb::getattr(self, "_kwargs", nb::none());
  if (!extra.is_none()) config.update(nb::borrow<nb::dict>(extra));
  config["metric"] = nb::object(nb::handle(self.type()).attr("__name__"));
  for (const char* key : {"name", "output_names", "label_names"}) config[key] = nb::object(self.attr(key));
  return config;
}

// How copies are made, by pickle and copy: symbind.metric._restore restores them.
nb::tuple reduce(nb::handle self) {
  nb::object state = nb::none(), native_type = nb::none();
  if (const EvalMetric* native = native_of(self)) {
    for (nb::handle type : nb::object(nb::handle(self.type()).attr("__mro__")))
      if (native_types().contains(type.ptr())) {
        native_type = nb::borrow(type);
        break;
      }
    state = nb::cast(native->state());
  }
  nb::dict attributes;
  attributes.update(attributes_dict(self));
  if (!native_type.is_none())
    for (const char* key : {"name", "output_names", "label_names"}) attributes[key] = nb::object(self.attr(key));
  if (nb::hasattr(self, "metrics") && !native_type.is_none()) {
    nb::dict kwargs;
    kwargs["metrics"] = nb::list(nb::object(self.attr("metrics")));
    attributes["_kwargs"] = kwargs;
  }
  const nb::object restore = nb::module_::import_("symbind.metric").attr("_restore");
  return nb::make_tuple(restore, nb::make_tuple(self.type(), native_type, attributes, state));
}

// An attribute that is in C++ for the classes there, and in the object itself for others.
template <class Get, class Set>
void def_attribute(nb::class_<EvalMetric, BareMetric>& type, const char* name, Get get_native, Set set_native) {
  type.def_prop_rw(
      name,
      [name, get_native](nb::handle self) -> nb::object {
        if (const EvalMetric* native = native_of(self)) return get_native(*native);
        PyObject* found = PyDict_GetItemString(attributes_dict(self).ptr(), name);
        if (found) return nb::borrow(found);
        throw nb::attribute_error(
            join(Py_TYPE(self.ptr())->tp_name, " has no ", name, " yet: EvalMetric.__init__ or reset() sets it")
                .c_str());
      },
      [name, set_native](nb::handle self, nb::handle value) {
        if (EvalMetric* native = native_of(self))
          set_native(*native, value);
        else
          attributes_dict(self)[name] = value;
      },
      nb::arg().none());
}

void bind_base(nb::module_& m) {
  nb::class_<EvalMetric, BareMetric> type(m, "EvalMetric", nb::dynamic_attr(), nb::is_weak_referenceable(),
                                          nb::type_slots(collector_slots),
                                          "How good predictions are. A subclass defines update(labels, preds), which "
                                          "adds to sum_metric and num_inst.");
  type.def(
      "__init__",
      [](nb::pointer_and_handle<EvalMetric> self, nb::object name, nb::object output_names, nb::object label_names,
         nb::kwargs kwargs) {
        new (self.p) BareMetric(EvalMetric::Options{});
        nb::inst_set_state(self.h, true, true);  // reset() below may access it
        nb::dict rest;
        rest.update(kwargs);
        nb::object global = nb::bool_(false);
        if (rest.contains("has_global_stats")) {
          global = rest["has_global_stats"];
          nb::del(rest["has_global_stats"]);
        }
        int count = 0;
        const bool is_number =
            !PyBool_Check(output_names.ptr()) && nb::try_cast(output_names, count, false) && count > 0;
        if (is_number) {
          self.h.attr("num") = output_names;
          self.h.attr(number_of_metrics_attribute) = output_names;
        }
        self.h.attr("name") = is_number ? name : nb::object(nb::str(name));
        self.h.attr("output_names") = is_number ? nb::none() : output_names;
        self.h.attr("label_names") = label_names;
        self.h.attr("_has_global_stats") = global;
        self.h.attr("_kwargs") = rest;
        self.h.attr("reset")();
      },
      nb::arg("name"), nb::arg("output_names").none() = nb::none(), nb::arg("label_names").none() = nb::none(),
      nb::arg("kwargs"));
  type.def("update", &update, nb::arg("labels").none(), nb::arg("preds").none(), "Counts a batch.")
      .def("update_dict", &update_dict, nb::arg("label"), nb::arg("pred"),
           "Counts a batch of arrays by name, taking those that label_names and output_names say.")
      .def("reset", &reset, "Forgets everything.")
      .def("reset_local", &reset_local, "Resets the local sums; the global ones are kept.")
      .def("get", &get, "(name, value); NaN where nothing was counted.")
      .def("get_global", &get_global, "The same since the last reset().")
      .def("get_name_value", [](nb::handle self) { return pairs_of(nb::object(self.attr("get")())); })
      .def("get_global_name_value", [](nb::handle self) { return pairs_of(nb::object(self.attr("get_global")())); })
      .def("get_config", &get_config, "What makes another one like it.")
      .def("__str__",
           [](nb::handle self) {
             nb::object values = nb::steal(PyDict_New());
             for (nb::handle pair : nb::object(self.attr("get_name_value")()))
               values[nb::object(pair[0])] = nb::object(pair[1]);
             return join("EvalMetric: ", nb::str(values).c_str());
           })
      .def("__reduce__", &reduce)
      .def("_set_state", [](EvalMetric& self, const std::vector<double>& state) { self.set_state(state); });

  const auto with = [](auto change) {
    return [change](EvalMetric& metric, nb::handle value) {
      EvalMetric::Options options = metric.options();
      change(options, value);
      metric.set_options(std::move(options));
    };
  };
  def_attribute(
      type, "name", [](const EvalMetric& metric) -> nb::object { return nb::cast(metric.name()); },
      with([](EvalMetric::Options& options, nb::handle value) { options.name = nb::str(value).c_str(); }));
  def_attribute(
      type, "output_names", [](const EvalMetric& metric) { return names_or_none(metric.options().output_names); },
      with([](EvalMetric::Options& options, nb::handle value) { options.output_names = names_from(value); }));
  def_attribute(
      type, "label_names", [](const EvalMetric& metric) { return names_or_none(metric.options().label_names); },
      with([](EvalMetric::Options& options, nb::handle value) { options.label_names = names_from(value); }));
  def_attribute(
      type, "sum_metric", [](const EvalMetric& metric) -> nb::object { return nb::cast(metric.sums().sum); },
      [](EvalMetric& metric, nb::handle value) {
        metric.set_sums({float_of(value), metric.sums().instances});
      });
  def_attribute(
      type, "num_inst", [](const EvalMetric& metric) -> nb::object { return nb::cast(metric.sums().instances); },
      [](EvalMetric& metric, nb::handle value) {
        metric.set_sums({metric.sums().sum, int_of(value)});
      });
  def_attribute(
      type, "global_sum_metric",
      [](const EvalMetric& metric) -> nb::object { return nb::cast(metric.global_sums().sum); },
      [](EvalMetric& metric, nb::handle value) {
        metric.set_global_sums({float_of(value), metric.global_sums().instances});
      });
  def_attribute(
      type, "global_num_inst",
      [](const EvalMetric& metric) -> nb::object { return nb::cast(metric.global_sums().instances); },
      [](EvalMetric& metric, nb::handle value) {
        metric.set_global_sums({metric.global_sums().sum, int_of(value)});
      });
}

// ---- the metrics there are ------------------------------------------------------------------------------------------

template <class Metric>
nb::class_<Metric, EvalMetric> native_class(nb::module_& m, const char* name, const char* doc) {
  nb::class_<Metric, EvalMetric> type(m, name, nb::dynamic_attr(), nb::type_slots(collector_slots), doc);
  native_types().insert(type.ptr());
  return type;
}

EvalMetric::Options options_of(const std::string& name, nb::handle output_names, nb::handle label_names) {
  return {name, names_from(output_names), names_from(label_names)};
}

// Further constructor arguments: readable as attributes, and stored for get_config and copies.
template <class... Values>
void keep(nb::handle self, const std::pair<const char*, Values>&... arguments) {
  nb::dict kwargs;
  ((kwargs[arguments.first] = arguments.second), ...);
  (nb::setattr(self, arguments.first, nb::cast(arguments.second)), ...);
  self.attr("_kwargs") = kwargs;
}

template <class Metric>
void bind_plain(nb::module_& m, const char* class_name, const char* usual_name, const char* doc) {
  native_class<Metric>(m, class_name, doc)
      .def(
          "__init__",
          [](nb::pointer_and_handle<Metric> self, const std::string& name, nb::handle output_names,
             nb::handle label_names) {
            new (self.p) Metric(options_of(name, output_names, label_names));
            keep(self.h);
          },
          nb::arg("name") = usual_name, nb::arg("output_names").none() = nb::none(),
          nb::arg("label_names").none() = nb::none());
}

// Metrics with one more argument before or after the three common ones.
template <class Metric, class Argument>
void bind_with(nb::module_& m, const char* class_name, const char* usual_name, const char* argument,
               const Argument& usual, const char* doc) {
  native_class<Metric>(m, class_name, doc)
      .def(
          "__init__",
          [argument](nb::pointer_and_handle<Metric> self, const Argument& value, const std::string& name,
                     nb::handle output_names, nb::handle label_names) {
            new (self.p) Metric(value, options_of(name, output_names, label_names));
            keep(self.h, std::pair(argument, value));
          },
          nb::arg(argument) = usual, nb::arg("name") = usual_name, nb::arg("output_names").none() = nb::none(),
          nb::arg("label_names").none() = nb::none());
}

template <class Metric>
void bind_averaged(nb::module_& m, const char* class_name, const char* usual_name, const char* doc) {
  native_class<Metric>(m, class_name, doc)
      .def(
          "__init__",
          [](nb::pointer_and_handle<Metric> self, const std::string& name, nb::handle output_names,
             nb::handle label_names, const std::string& average) {
            new (self.p) Metric(average, options_of(name, output_names, label_names));
            keep(self.h, std::pair("average", average));
          },
          nb::arg("name") = usual_name, nb::arg("output_names").none() = nb::none(),
          nb::arg("label_names").none() = nb::none(), nb::arg("average") = "macro");
}

// A name for a function's metric: the function's own, where it has one.
std::string name_of_function(nb::handle feval) {
  const nb::object function = nb::hasattr(feval, "__name__") ? nb::borrow(feval) : nb::borrow(feval.type());
  const std::string name = nb::str(function.attr("__name__")).c_str();
  return name.find('<') == std::string::npos ? name : join("custom(", name, ")");
}

metric::Feval feval_from(nb::object feval, nb::handle keeper) {
  return [function = Held(std::move(feval), keeper)](const NDArray& label, const NDArray& pred) {
    AcquireGil acquire;
    const nb::object result = function.get()(to_numpy(label), to_numpy(pred));
    if (!PyTuple_Check(result.ptr())) return metric::Score(float_of(result));
    if (nb::len(result) != 2)
      throw ValueError(
          join("the function of a metric returns a number or (sum, instances), not ", nb::repr(result).c_str()));
    return metric::Score(float_of(nb::object(result[0])), int_of(nb::object(result[1])));
  };
}

void bind_custom_metric(nb::module_& m) {
  native_class<metric::CustomMetric>(m, "CustomMetric", "A function of NumPy arrays, feval(label, pred), as a metric.")
      .def(
          "__init__",
          [](nb::pointer_and_handle<metric::CustomMetric> self, nb::object feval, nb::object name,
             bool allow_extra_outputs, nb::handle output_names, nb::handle label_names) {
            if (!PyCallable_Check(feval.ptr()))
              throw TypeError(join("expected a function, not ", nb::repr(feval).c_str()));
            new (self.p) metric::CustomMetric(feval_from(feval, self.h),
                                              name.is_none() ? name_of_function(feval) : nb::str(name).c_str(),
                                              allow_extra_outputs, names_from(output_names), names_from(label_names));
            keep(self.h, std::pair("feval", feval), std::pair("allow_extra_outputs", allow_extra_outputs));
            self.h.attr("_feval") = feval;
            self.h.attr("_allow_extra_outputs") = allow_extra_outputs;
          },
          nb::arg("feval"), nb::arg("name").none() = nb::none(), nb::arg("allow_extra_outputs") = false,
          nb::arg("output_names").none() = nb::none(), nb::arg("label_names").none() = nb::none())
      .def("get_config", [](nb::handle) {
        PyErr_SetString(PyExc_NotImplementedError, "a CustomMetric has a function, which no configuration can say");
        throw nb::python_error();
      });
}

// A list that adds to the composite what is appended to it.
nb::object metrics_of(nb::pointer_and_handle<metric::Composite> self) {
  nb::list list;
  for (const EvalMetricPtr& metric : self.p->metrics()) list.append(metric_to_python(metric.get()));
  return nb::module_::import_("symbind.metric").attr("_Parts")(list, self.h);
}

void bind_composite(nb::module_& m) {
  native_class<metric::Composite>(m, "CompositeEvalMetric", "Several metrics as one.")
      .def(
          "__init__",
          [](nb::pointer_and_handle<metric::Composite> self, nb::handle metrics, const std::string& name,
             nb::handle output_names, nb::handle label_names) {
            std::vector<EvalMetricPtr> all;
            if (!metrics.is_none())
              for (nb::handle metric : metrics) all.push_back(metric_from(metric, self.h));
            new (self.p) metric::Composite(std::move(all), options_of(name, output_names, label_names));
            keep(self.h);
          },
          nb::arg("metrics").none() = nb::none(), nb::arg("name") = "composite",
          nb::arg("output_names").none() = nb::none(), nb::arg("label_names").none() = nb::none())
      .def(
          "add",
          [](nb::pointer_and_handle<metric::Composite> self, nb::handle metric) {
            self.p->add(metric_from(metric, self.h));
          },
          nb::arg("metric"))
      .def(
          "get_metric",
          [](const metric::Composite& self, size_t index) {
            if (index >= self.metrics().size())
              throw ValueError(join("there are ", self.metrics().size(), " metrics, not one at ", index));
            return metric_to_python(self.get_metric(index).get());
          },
          nb::arg("index"))
      .def_prop_ro("metrics", &metrics_of)
      .def("get_config", [](nb::handle self) {
        nb::dict config = get_config(self);
        nb::list parts;
        for (nb::handle metric : nb::object(self.attr("metrics"))) parts.append(metric.attr("get_config")());
        config["metrics"] = parts;
        return config;
      });
}

}  // namespace

void bind_metric(nb::module_& m) {
  using namespace metric;
  bind_base(m);
  bind_with<Accuracy, int64_t>(m, "Accuracy", "accuracy", "axis", 1,
                               "How often the class with the greatest score is the label.");
  bind_with<TopKAccuracy, int64_t>(m, "TopKAccuracy", "top_k_accuracy", "top_k", 1,
                                   "How often the label is among the top_k greatest scores.");
  bind_with<CrossEntropy, double>(m, "CrossEntropy", "cross-entropy", "eps", 1e-12,
                                  "The mean of -log(probability of the label).");
  bind_with<NegativeLogLikelihood, double>(m, "NegativeLogLikelihood", "nll-loss", "eps", 1e-12,
                                           "The mean of -log(probability of the label).");
  native_class<Perplexity>(m, "Perplexity", "exp of the mean of -log(probability of the label).")
      .def(
          "__init__",
          [](nb::pointer_and_handle<Perplexity> self, nb::object ignore_label, int64_t axis, const std::string& name,
             nb::handle output_names, nb::handle label_names) {
            const auto ignored = ignore_label.is_none() ? std::nullopt : std::optional(float_of(ignore_label));
            new (self.p) Perplexity(ignored, axis, options_of(name, output_names, label_names));
            keep(self.h, std::pair("ignore_label", ignore_label), std::pair("axis", axis));
          },
          nb::arg("ignore_label").none(), nb::arg("axis") = -1, nb::arg("name") = "perplexity",
          nb::arg("output_names").none() = nb::none(), nb::arg("label_names").none() = nb::none());
  bind_averaged<F1>(m, "F1", "f1", "The harmonic mean of precision and recall, of two classes.");
  bind_averaged<MCC>(m, "MCC", "mcc", "Matthews' correlation of two classes.");
  bind_averaged<PearsonCorrelation>(m, "PearsonCorrelation", "pearsonr", "Pearson's correlation.");
  bind_plain<PCC>(m, "PCC", "pcc", "The correlation of any number of classes.");
  bind_plain<MAE>(m, "MAE", "mae", "The mean absolute error.");
  bind_plain<MSE>(m, "MSE", "mse", "The mean squared error.");
  bind_plain<RMSE>(m, "RMSE", "rmse", "The root of the mean squared error.");
  bind_plain<Loss>(m, "Loss", "loss", "The mean of all outputs.");
  bind_plain<Torch>(m, "Torch", "torch", "The mean of all outputs.");
  bind_plain<Caffe>(m, "Caffe", "caffe", "The mean of all outputs.");
  bind_custom_metric(m);
  bind_composite(m);
}

}  // namespace symbind::python
