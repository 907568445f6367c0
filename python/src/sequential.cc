#include "symbind/train/sequential.h"

#include <numeric>

#include "bindings.h"
#include "held.h"
#include "module_steps.h"

namespace symbind::python {
namespace {

using Self = nb::pointer_and_handle<SequentialModule>;

nb::object add(Self self, nb::handle module, nb::kwargs metas) {
  if (!nb::isinstance<BaseModule>(module))
    throw TypeError("SequentialModule.add takes a module: one of symbind.mod, or of a class derived from these");
  SequentialPart part;
  for (const auto& [name, value] : metas) {
    const auto meta = nb::cast<std::string>(name);
    if (meta != "take_labels" && meta != "auto_wiring")
      throw ValueError(join("unknown meta '", meta, "'; there are take_labels and auto_wiring"));
    (meta == "take_labels" ? part.take_labels : part.auto_wiring) = nb::cast<bool>(nb::bool_(nb::borrow(value)));
  }
  self.p->add(Held(nb::borrow(module), self.h).as<BaseModule>(), part);
  nb::cast<nb::list>(self.h.attr("_metas")).append(metas);
  return nb::borrow(self.h);
}

// A module that was added from Python is returned itself.
nb::list layers(const SequentialModule& self) {
  nb::list list;
  for (size_t i = 0; i < self.size(); ++i) list.append(module_to_python(&self.layer(i)));
  return list;
}

void look_again_in(const SequentialModule& self) {
  for (size_t i = 0; i < self.size(); ++i) look_again(self.layer(i));
}

// The states of all modules, in their order. A module may be written in Python, and one on several devices has lists.
nb::list states_of(const SequentialModule& self, Truth merge) {
  nb::list all;
  for (nb::handle module : layers(self))
    all.attr("extend")(module.attr("get_states")(nb::arg("merge_multi_context") = merge.value));
  return all;
}

void set_states(SequentialModule& self, nb::handle states, std::optional<double> value) {
  if (states.is_none() == !value.has_value()) throw ValueError("set_states takes either states or a value");
  if (value) return self.SequentialModule::set_states(*value);
  const nb::list given(states), modules = layers(self);
  std::vector<size_t> counts;
  for (nb::handle module : modules) counts.push_back(nb::len(nb::object(module.attr("get_states")())));
  const size_t all = std::accumulate(counts.begin(), counts.end(), size_t{0});
  if (given.size() != all)
    throw ValueError(join("[set_states] ", given.size(), " states were given, the modules have ", all));
  size_t next = 0;
  for (size_t i = 0; i < counts.size(); ++i) {
    nb::list part;
    for (size_t k = 0; k < counts[i]; ++k) part.append(nb::object(given[next++]));
    if (counts[i] > 0) modules[i].attr("set_states")(part);
  }
}

void bind_running(ModuleClass<SequentialModule>& type) {
  type.def(
          "get_params",
          [](SequentialModule& self) {
            BaseModule::Params params;
            {
              ReleaseGil release;
              params = self.SequentialModule::get_params();
            }
            return nb::make_tuple(dict_of(params.arg_params), dict_of(params.aux_params));
          },
          "(arg_params, aux_params) of all modules.")
      .def(
          "forward",
          [](Self self, nb::handle data_batch, std::optional<Truth> is_train) {
            const LoggerScope log(logger_of(self.h));
            const DataBatch batch = batch_from(data_batch);
            const KeeperScope making(self.h);
            look_again_in(*self.p);
            ReleaseGil release;
            self.p->SequentialModule::forward(batch, flag(is_train));
          },
          nb::arg("data_batch"), nb::arg("is_train").none() = nb::none(), "Runs the modules one after the other.")
      .def(
          "get_outputs",
          [](SequentialModule& self, Truth merge) -> nb::object {
            const size_t count = self.size();
            if (!merge && count > 0) {  // the last one knows its devices
              const nb::object last = module_to_python(&self.layer(count - 1));
              return last.attr("get_outputs")(nb::arg("merge_multi_context") = false);
            }
            return list_of(self.SequentialModule::get_outputs());
          },
          nb::arg("merge_multi_context") = true, "The outputs of the last module.")
      .def(
          "get_input_grads",
          [](SequentialModule& self, Truth merge) -> nb::object {
            if (!merge && self.size() > 0)
              return module_to_python(&self.layer(0)).attr("get_input_grads")(nb::arg("merge_multi_context") = false);
            return list_of(self.SequentialModule::get_input_grads());
          },
          nb::arg("merge_multi_context") = true, "The gradients with respect to the inputs of the first module.")
      .def("get_states", &states_of, nb::arg("merge_multi_context") = true,
           "The states of all modules, in their order.")
      .def("set_states", &set_states, nb::arg("states").none() = nb::none(), nb::arg("value").none() = nb::none(),
           "Sets the states of all modules: from a list in their order, or to one value.")
      .def(
          "update_metric",
          [](SequentialModule& self, nb::handle eval_metric, nb::handle labels, Truth pre_sliced) {
            const EvalMetricPtr metric = metric_from(eval_metric);
            const std::vector<NDArray> arrays = arrays_from(labels);
            ReleaseGil release;
            self.SequentialModule::update_metric(*metric, arrays, pre_sliced);
          },
          nb::arg("eval_metric"), nb::arg("labels").none(), nb::arg("pre_sliced") = false,
          "Updates a metric by the modules that take labels.");
  def_steps<SequentialModule>(type);
}

}  // namespace

void bind_sequential(nb::module_& m) {
  ModuleClass<SequentialModule> type(m, "SequentialModule", nb::type_slots(collector_slots),
                                     "Modules one after the other: the outputs of each are the data of the next.");
  type.def(
          "__init__",
          [](Self self, nb::object logger) {
            new (self.p) PythonModule<SequentialModule>();
            self.h.attr("logger") = logger.is_none() ? nb::module_::import_("logging") : logger;
            self.h.attr("_metas") = nb::list();
          },
          nb::arg("logger").none() = nb::none())
      .def("add", &add, nb::arg("module"), nb::arg("kwargs"),
           "Adds a module. take_labels=True: it is given the labels; auto_wiring=True: its data has its own names. "
           "Returns self.")
      .def_prop_ro("_modules", &layers);
  bind_running(type);
}

}  // namespace symbind::python
