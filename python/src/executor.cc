#include "symbind/exec/executor.h"

#include <algorithm>

#include "bindings.h"
#include "convert.h"

namespace symbind::python {
namespace {

nb::list forward(nb::pointer_and_handle<Executor> executor, Truth is_train, const nb::dict& inputs) {
  Executor& self = *executor.p;
  const KeeperScope making(keeper_of(executor.h));
  NamedArrays arrays;
  for (auto [name, value] : inputs) arrays[nb::cast<std::string>(name)] = array_from(value, cpu());
  try {
    ReleaseGil release;
    self.forward(is_train, arrays);
  } catch (const Error& error) {
    const auto arguments = self.symbol().list_arguments();
    for (const auto& [name, array] : arrays)
      if (std::find(arguments.begin(), arguments.end(), name) == arguments.end()) throw TypeError(error.what());
    throw;
  }
  return list_of(self.outputs());
}

void backward(nb::pointer_and_handle<Executor> self, nb::handle out_grads, Truth is_train) {
  const Arrays grads = bound_arrays_from(out_grads);
  const KeeperScope making(keeper_of(self.h));
  ReleaseGil release;
  self.p->backward(grads, is_train);
}

void set_monitor(nb::pointer_and_handle<Executor> self, nb::object callback, Truth monitor_all) {
  if (callback.is_none()) return self.p->set_monitor_callback({});
  if (!PyCallable_Check(callback.ptr())) throw TypeError("a monitor callback must be callable");
  self.p->set_monitor_callback(
      [function = Held(std::move(callback), keeper_of(self.h))](const std::string& name, const NDArray& array) {
        AcquireGil acquire;
        function.get()(name, array);
      },
      monitor_all);
}

ExecutorPtr reshape(Executor& self, Truth partial_shaping, Truth allow_up_sizing, bool own_memory,
                    const nb::dict& shapes) {
  NamedShapes named;
  for (auto [name, shape] : shapes) named[nb::cast<std::string>(name)] = Shape(dims_from(shape));
  return self.reshape(
      named, {.partial_shaping = partial_shaping, .allow_up_sizing = allow_up_sizing, .own_memory = own_memory});
}

// What MXNet stores of arg_dict and the others under these names; scripts reset it by None.
void bind_stored_dicts(nb::class_<Executor>& type) {
  for (const char* name : {"arg_dict", "grad_dict", "aux_dict", "output_dict"})
    type.def_prop_rw((std::string("_") + name).c_str(), [name](nb::handle self) { return nb::object(self.attr(name)); },
                     [name](nb::handle, nb::handle value) {
                       if (value.is_none()) return;
                       PyErr_Format(PyExc_AttributeError,
                                    "%s has the arrays that are bound: assign to these, as %s['name'][:] = ...", name,
                                    name);
                       throw nb::python_error();
                     },
                     nb::for_setter(nb::arg("value").none()));
}

}  // namespace

void bind_executor(nb::module_& m) {
  nb::class_<Executor> type(m, "Executor", nb::dynamic_attr(), nb::is_weak_referenceable(),
                            nb::type_slots(collector_slots), "A network bound to arrays on a device.");
  bind_stored_dicts(type);
  // The functions that take any number of keywords are in executor.py.
  type.def("_forward", &forward, nb::arg("is_train"), nb::arg("inputs"))
      .def("backward", &backward, nb::arg("out_grads").none() = nb::none(), nb::arg("is_train") = true,
           "Computes the gradients of the last forward, from out_grads (an array, a list in the order of the outputs, "
           "or a dict).")
      .def_prop_ro(
          "outputs", [](const Executor& self) { return list_of(self.outputs()); },
          "The outputs of the last forward; the same arrays at every call.")
      .def_prop_ro(
          "arg_arrays", [](const Executor& self) { return list_of(self.arg_arrays()); },
          "The arguments, in the order of list_arguments().")
      .def_prop_ro(
          "grad_arrays", [](const Executor& self) { return list_of(self.grad_arrays()); },
          "The gradients in the order of list_arguments(); None where an argument has none.")
      .def_prop_ro(
          "aux_arrays", [](const Executor& self) { return list_of(self.aux_arrays()); },
          "The auxiliary states, in the order of list_auxiliary_states().")
      .def_prop_ro(
          "arg_dict",
          [](const Executor& self) { return dict_in_order(self.symbol().list_arguments(), self.arg_arrays()); },
          "The arguments by name.")
      .def_prop_ro(
          "grad_dict",
          [](const Executor& self) { return dict_in_order(self.symbol().list_arguments(), self.grad_arrays()); },
          "The gradients by the name of their argument; None where it has none.")
      .def_prop_ro(
          "aux_dict",
          [](const Executor& self) { return dict_in_order(self.symbol().list_auxiliary_states(), self.aux_arrays()); },
          "The auxiliary states by name.")
      .def_prop_ro(
          "output_dict", [](const Executor& self) { return dict_in_order(self.output_names(), self.outputs()); },
          "The outputs by name.")
      .def(
          "copy_params_from",
          [](Executor& self, nb::handle arg_params, nb::handle aux_params, Truth allow_extra_params) {
            const NamedArrays args = named_arrays_from(arg_params), aux = named_arrays_from(aux_params);
            try {
              self.copy_params_from(args, aux, allow_extra_params);
            } catch (const Error& error) {
              throw ValueError(error.what());
            }
          },
          nb::arg("arg_params"), nb::arg("aux_params").none() = nb::none(), nb::arg("allow_extra_params") = false,
          "Copies arrays into the arguments and auxiliary states of the same names; an unknown name fails unless "
          "allow_extra_params is set.")
      .def("_reshape", &reshape, nb::arg("partial_shaping"), nb::arg("allow_up_sizing"), nb::arg("own_memory"),
           nb::arg("shapes"))
      .def("set_monitor_callback", &set_monitor, nb::arg("callback").none(), nb::arg("monitor_all") = false,
           "Calls callback(name, array) after each node with its outputs (monitor_all: and inputs); None removes the "
           "callback.")
      .def(
          "debug_str",
          [](nb::pointer_and_handle<Executor> self) {
            const KeeperScope making(keeper_of(self.h));
            return self.p->debug_str();
          },
          "The compiled plans as tables: steps, shapes, memory.")
      .def(
          "memory_picture",
          [](nb::pointer_and_handle<Executor> self, const std::string& title) {
            const KeeperScope making(keeper_of(self.h));
            return self.p->memory_picture(title);
          },
          nb::arg("title") = "", "The working memory over the steps of a plan, as SVG text.")
      .def(
          "get_optimized_symbol", [](const Executor& self) { return self.symbol(); },
          "The network as it is bound. It is optimized in the plans that are compiled from it: see debug_str().")
      .def_prop_ro("_symbol", &Executor::symbol)
      .def_prop_ro("_ctx", &Executor::context)
      .def(
          "memory",
          [](nb::pointer_and_handle<Executor> self) {
            const KeeperScope making(keeper_of(self.h));
            const MemoryReport report = self.p->memory();
            nb::dict result;
            result["arena"] = report.arena;
            result["arguments"] = report.arguments;
            result["gradients"] = report.gradients;
            result["outputs"] = report.outputs;
            result["unshared"] = report.unshared;
            return result;
          },
          "Bytes of working memory, arguments, gradients and outputs, and of working memory without sharing.");
}

}  // namespace symbind::python
