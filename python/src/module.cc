#include "symbind/train/module.h"

#include "bindings.h"
#include "executor_group.h"
#include "initializer.h"
#include "kvstore.h"
#include "log.h"
#include "metric.h"
#include "optimizer.h"
#include "python_module.h"

namespace symbind::python {
namespace {

ModuleOptions options_from(nb::handle data_names, nb::handle label_names, nb::handle context, nb::handle work_load_list,
                           nb::handle fixed_param_names, nb::handle state_names, nb::handle group2ctxs,
                           nb::handle compression_params, size_t memory_budget) {
  ModuleOptions options;
  options.data_names = names_from(data_names);
  options.label_names = names_from(label_names);
  options.context = context.is_none() ? std::vector<Context>{cpu()} : contexts_from(context);
  if (!work_load_list.is_none()) options.work_load_list = nb::cast<std::vector<double>>(work_load_list);
  options.fixed_param_names = names_from(fixed_param_names);
  options.state_names = names_from(state_names);
  options.group2ctxs = group2ctxs_from(group2ctxs, options.context.size());
  options.compression_params = attributes_of(compression_params);
  options.compile_options.memory_budget = memory_budget;
  return options;
}

// Anything that looks like a batch; a list of them is one per context.
void forward(nb::pointer_and_handle<Module> module, nb::handle data_batch, std::optional<bool> is_train) {
  Module& self = *module.p;
  const KeeperScope making(module.h);
  if (PyList_Check(data_batch.ptr())) {
    std::vector<DataBatch> batches;
    for (nb::handle item : data_batch) batches.push_back(batch_from(item));
    ReleaseGil release;
    return self.forward(batches, is_train);
  }
  const DataBatch batch = batch_from(data_batch);
  ReleaseGil release;
  self.Module::forward(batch, is_train);
}

DataParallelExecutorGroup::PerDevice per_device_from(nb::handle value) {
  DataParallelExecutorGroup::PerDevice lists;
  for (nb::handle item : value) lists.push_back(arrays_from(item));
  return lists;
}

void set_states(Module& self, nb::handle states, std::optional<double> value) {
  if (states.is_none() == !value.has_value()) throw nb::value_error("set_states takes either states or a value");
  if (value) return self.set_states(*value);
  const nb::list list(states);
  if (list.size() > 0 && nb::isinstance<NDArray>(list[0])) return self.set_states(arrays_from(states));
  self.set_states(per_device_from(states));
}

void update_metric(Module& self, nb::handle eval_metric, nb::handle labels, bool pre_sliced) {
  const EvalMetricPtr metric = metric_from(eval_metric);
  if (pre_sliced) return self.exec_group()->update_metric(*metric, per_device_from(labels));
  self.Module::update_metric(*metric, arrays_from(labels), false);
}

nb::object labels_or_none(const std::vector<DataDesc>& shapes) {
  return shapes.empty() ? nb::none() : nb::object(list_of(shapes));
}

// The parameters as the module keeps them on the CPU: zeros between bind and init_params, None before.
using Group = DataParallelExecutorGroup;
nb::object host_params(const Module& self, const std::vector<std::string>& names, const NamedArrays& values,
                       const Group::PerDevice& (Group::*bound)() const) {
  if (self.params_initialized) return dict_in_order(names, values);
  if (!self.binded) return nb::none();
  nb::dict dict;
  const Group::PerDevice& arrays = (*self.exec_group().*bound)();
  for (size_t i = 0; i < names.size(); ++i)
    dict[names[i].c_str()] = zeros(arrays[i][0].shape(), cpu(), arrays[i][0].dtype());
  return dict;
}

void bind_steps(nb::class_<Module, BaseModule, PythonModule<Module>>& type) {
  type.def(
          "bind",
          [](nb::handle self, nb::handle data_shapes, nb::handle label_shapes, bool for_training, bool inputs_need_grad,
             bool force_rebind, BaseModule* shared_module, nb::handle grad_req) {
            const LoggerScope log(logger_of(self));
            auto& module = nb::cast<Module&>(self);
            const std::vector<DataDesc> data = descs_from(data_shapes), label = descs_from(label_shapes);
            const BindArgs args{.for_training = for_training,
                                .inputs_need_grad = inputs_need_grad,
                                .force_rebind = force_rebind,
                                .shared_module = shared_module,
                                .grad_req = grad_reqs_from(grad_req)};
            {
              ReleaseGil release;
              module.Module::bind(data, label, args);
            }
            self.attr("_grad_req") = grad_req;
          },
          nb::arg("data_shapes"), nb::arg("label_shapes").none() = nb::none(), nb::arg("for_training") = true,
          nb::arg("inputs_need_grad") = false, nb::arg("force_rebind") = false,
          nb::arg("shared_module").none() = nb::none(), nb::arg("grad_req") = "write",
          "Allocates executors for the given shapes, one per context. An already bound module is left as it is unless "
          "force_rebind is set.")
      .def(
          "init_params",
          [](nb::handle self, nb::handle initializer, nb::handle arg_params, nb::handle aux_params, bool allow_missing,
             bool force_init, bool allow_extra) {
            const LoggerScope log(logger_of(self));
            auto& module = nb::cast<Module&>(self);
            const InitParamsArgs args{.initializer = initializer_from(initializer),
                                      .arg_params = optional_arrays(arg_params),
                                      .aux_params = optional_arrays(aux_params),
                                      .allow_missing = allow_missing,
                                      .force_init = force_init,
                                      .allow_extra = allow_extra};
            ReleaseGil release;
            module.Module::init_params(args);
          },
          nb::arg("initializer").none() = nb::none(), nb::arg("arg_params").none() = nb::none(),
          nb::arg("aux_params").none() = nb::none(), nb::arg("allow_missing") = false, nb::arg("force_init") = false,
          nb::arg("allow_extra") = false,
          "Initializes parameters and auxiliary states: from arg_params and aux_params where given, else by the "
          "initializer.")
      .def(
          "set_params",
          [](Module& self, nb::handle arg_params, nb::handle aux_params, bool allow_missing, bool force_init,
             bool allow_extra) {
            self.Module::set_params(named_arrays_from(arg_params), named_arrays_from(aux_params), allow_missing,
                                    force_init, allow_extra);
          },
          nb::arg("arg_params").none(), nb::arg("aux_params").none(), nb::arg("allow_missing") = false,
          nb::arg("force_init") = true, nb::arg("allow_extra") = false,
          "Sets parameters and auxiliary states; names that are missing fail unless allow_missing is set.")
      .def(
          "get_params",
          [](Module& self) {
            const BaseModule::Params params = self.Module::get_params();
            return nb::make_tuple(dict_in_order(self.param_names(), params.arg_params),
                                  dict_in_order(self.aux_names(), params.aux_params));
          },
          "(arg_params, aux_params) on the CPU, fetched from the devices if they have changed there.")
      .def(
          "init_optimizer",
          [](nb::handle self, nb::handle kvstore, nb::handle optimizer, nb::handle optimizer_params, bool force_init) {
            const LoggerScope log(logger_of(self));
            auto& module = nb::cast<Module&>(self);
            const nb::handle keeper = keeper_of_optimizer(self, kvstore);
            const InitOptimizerArgs args{.kvstore = kvstore_from(kvstore, self),
                                         .optimizer = optimizer_arg_from(optimizer, keeper),
                                         .optimizer_params = optimizer_params_from(optimizer_params, keeper),
                                         .force_init = force_init};
            ReleaseGil release;  // a store may be busy with an updater of Python's
            module.Module::init_optimizer(args);
          },
          nb::arg("kvstore").none() = "local", nb::arg("optimizer") = "sgd",
          nb::arg("optimizer_params").none() = nb::make_tuple(nb::make_tuple("learning_rate", 0.01)),
          nb::arg("force_init") = false,
          "Sets the optimizer, given by name or as an object, and the store that exchanges gradients.")
      .def("forward", &forward, nb::arg("data_batch"), nb::arg("is_train").none() = nb::none(),
           "Runs the network on a batch; a batch of other shapes reshapes the module. is_train=None: as bound.")
      .def(
          "backward",
          [](Module& self, nb::handle out_grads) {
            const auto grads = arrays_from(out_grads);
            ReleaseGil release;
            self.Module::backward(grads);
          },
          nb::arg("out_grads").none() = nb::none(),
          "Computes the gradients of the last forward, from out_grads where the network has outputs that are no "
          "losses.")
      .def(
          "update",
          [](Module& self) {
            ReleaseGil release;
            self.Module::update();
          },
          "Updates the parameters with the gradients of the last backward.")
      .def(
          "get_outputs",
          [](Module& self, bool merge) {
            return merge ? list_of(self.Module::get_outputs()) : list_of(self.get_outputs_per_device());
          },
          nb::arg("merge_multi_context") = true,
          "The outputs of the last forward: merged over the devices, or with merge_multi_context=False a list per "
          "output.")
      .def(
          "get_input_grads",
          [](Module& self, bool merge) {
            return merge ? list_of(self.Module::get_input_grads()) : list_of(self.get_input_grads_per_device());
          },
          nb::arg("merge_multi_context") = true,
          "The gradients with respect to the inputs; the module must be bound with inputs_need_grad=True.")
      .def(
          "get_states",
          [](const Module& self, bool merge) {
            return merge ? list_of(self.get_states()) : list_of(self.get_states_per_device());
          },
          nb::arg("merge_multi_context") = true, "The states, merged over the devices or as a list per state.")
      .def("set_states", &set_states, nb::arg("states").none() = nb::none(), nb::arg("value").none() = nb::none(),
           "Sets the states: from arrays, or to one value.")
      .def("update_metric", &update_metric, nb::arg("eval_metric"), nb::arg("labels").none(),
           nb::arg("pre_sliced") = false, "Updates a metric with the outputs of the last forward and the labels.")
      .def(
          "install_monitor", [](Module& self, Monitor& mon) { self.Module::install_monitor(mon); }, nb::arg("mon"),
          "Installs a monitor on all executors.")
      .def(
          "reshape",
          [](Module& self, nb::handle data_shapes, nb::handle label_shapes) {
            self.reshape(descs_from(data_shapes), descs_from(label_shapes));
          },
          nb::arg("data_shapes"), nb::arg("label_shapes").none() = nb::none())
      .def(
          "borrow_optimizer",
          [](nb::pointer_and_handle<Module> self, nb::pointer_and_handle<Module> shared_module) {
            self.p->borrow_optimizer(*shared_module.p);
            keep_alive(self.h, shared_module.h);
          },
          nb::arg("shared_module"), "Shares the optimizer, the store and the updater of another module.");
}

void bind_files_of(nb::class_<Module, BaseModule, PythonModule<Module>>& type) {
  type.def(
          "save_checkpoint",
          [](nb::handle self, const std::string& prefix, int epoch, bool save_optimizer_states, bool) {
            const LoggerScope log(logger_of(self));
            auto& module = nb::cast<Module&>(self);
            ReleaseGil release;
            module.save_checkpoint(prefix, epoch, save_optimizer_states);
          },
          nb::arg("prefix"), nb::arg("epoch"), nb::arg("save_optimizer_states") = false,
          nb::arg("remove_amp_cast") = true,
          "Writes prefix-symbol.json, prefix-EPOCH.params and, if asked, prefix-EPOCH.states.")
      .def("save_optimizer_states", &Module::save_optimizer_states, nb::arg("fname"), nb::call_guard<ReleaseGil>(),
           "Writes the states of the optimizer to a file.")
      .def("load_optimizer_states", &Module::load_optimizer_states, nb::arg("fname"), nb::call_guard<ReleaseGil>(),
           "Reads the states of the optimizer from a file.")
      .def("_preload", [](Module& self, nb::handle arg_params, nb::handle aux_params, const std::string& states) {
        self.preload_params(named_arrays_from(arg_params), named_arrays_from(aux_params));
        self.preload_optimizer_states(states);
      });
}

// What the module keeps in C++ keeps the module while Python has it.
template <auto getter>
nb::object part(nb::pointer_and_handle<Module> self) {
  const auto& held = (self.p->*getter)();
  nb::object object;
  if constexpr (requires { to_python(held); })
    object = to_python(held);
  else
    object = nb::cast(held);
  keep_whole(object, self.h);
  return object;
}

// Names that scripts read though they begin with an underscore.
void bind_inside(nb::class_<Module, BaseModule, PythonModule<Module>>& type) {
  type.def_prop_ro(
          "symbol", [](const Module& self) { return self.Module::symbol(); }, "The network.")
      .def_prop_ro(
          "data_names", [](const Module& self) { return self.Module::data_names(); }, "The names of the data inputs.")
      .def_prop_ro(
          "label_names", [](const Module& self) { return self.Module::label_names(); },
          "The names of the label inputs.")
      .def_prop_ro(
          "output_names", [](const Module& self) { return self.Module::output_names(); }, "The names of the outputs.")
      .def_prop_ro(
          "data_shapes", [](const Module& self) { return list_of(self.Module::data_shapes()); },
          "The data inputs as DataDesc, as bound.")
      .def_prop_ro(
          "label_shapes", [](const Module& self) { return labels_or_none(self.Module::label_shapes()); },
          "The label inputs as DataDesc, as bound, or None.")
      .def_prop_ro(
          "output_shapes", [](const Module& self) { return list_of(self.Module::output_shapes()); },
          "(name, shape) of each output.")
      .def_prop_ro("_symbol", [](const Module& self) { return self.Module::symbol(); })
      .def_prop_ro("_exec_group", part<&Module::exec_group>)
      .def_prop_ro("_param_names", &Module::param_names)
      .def_prop_ro("_aux_names", &Module::aux_names)
      .def_prop_ro("_output_names", [](const Module& self) { return self.Module::output_names(); })
      .def_prop_ro("_data_names", [](const Module& self) { return self.options().data_names; })
      .def_prop_ro("_label_names", [](const Module& self) { return self.options().label_names; })
      .def_prop_ro("_state_names", [](const Module& self) { return self.options().state_names; })
      .def_prop_ro("_fixed_param_names", [](const Module& self) { return self.options().fixed_param_names; })
      .def_prop_ro("_context", [](const Module& self) { return self.options().context; })
      .def_prop_ro("_work_load_list",
                   [](const Module& self) {
                     const auto& given = self.options().work_load_list;
                     return given.empty() ? std::vector<double>(self.options().context.size(), 1) : given;
                   })
      .def_prop_ro("_compression_params", [](const Module& self) { return self.options().compression_params; })
      .def_prop_ro("_data_shapes",
                   [](const Module& self) -> nb::object {
                     return self.binded ? nb::object(list_of(self.Module::data_shapes())) : nb::none();
                   })
      .def_prop_ro(
          "_label_shapes",
          [](const Module& self) { return self.binded ? labels_or_none(self.Module::label_shapes()) : nb::none(); })
      .def_prop_rw(
          "_arg_params",
          [](const Module& self) {
            return host_params(self, self.param_names(), self.arg_params(), &Group::param_arrays);
          },
          [](Module& self, nb::handle params) { self.preload_params(named_arrays_from(params), self.aux_params()); },
          nb::for_setter(nb::arg("value").none()))
      .def_prop_rw(
          "_aux_params",
          [](const Module& self) { return host_params(self, self.aux_names(), self.aux_params(), &Group::aux_arrays); },
          [](Module& self, nb::handle params) { self.preload_params(self.arg_params(), named_arrays_from(params)); },
          nb::for_setter(nb::arg("value").none()))
      .def_prop_rw("_params_dirty", &Module::params_dirty, &Module::set_params_dirty)
      .def("_sync_params_from_devices", &Module::sync_params_from_devices)
      .def("_reset_bind", &Module::reset_bind)
      .def_prop_ro("_optimizer", part<&Module::optimizer>)
      .def_prop_ro("_kvstore", part<&Module::kvstore>)
      .def_prop_ro("_update_on_kvstore",
                   [](const Module& self) -> nb::object {
                     return self.optimizer_initialized ? nb::cast(self.update_on_kvstore()) : nb::none();
                   })
      .def_prop_ro("_updater", part<&Module::updater>)
      .def_prop_rw(
          "_preload_opt_states",
          [](const Module& self) -> nb::object {
            const std::string& path = self.preloaded_optimizer_states();
            return path.empty() ? nb::none() : nb::cast(path);
          },
          [](Module& self, std::optional<std::string> path) { self.preload_optimizer_states(path.value_or("")); },
          nb::for_setter(nb::arg("value").none()))
      .def_prop_ro("_total_exec_bytes", [](const Module& self) { return self.exec_group()->total_exec_bytes(); });
}

}  // namespace

void bind_module(nb::module_& m) {
  nb::class_<Module, BaseModule, PythonModule<Module>> type(
      m, "Module", nb::type_slots(collector_slots), "A network with its parameters, its optimizer and its devices.");
  type.def(
      "__init__",
      [](nb::pointer_and_handle<Module> self, const Symbol& symbol, nb::handle data_names, nb::handle label_names,
         nb::object logger, nb::handle context, nb::handle work_load_list, nb::handle fixed_param_names,
         nb::handle state_names, nb::handle group2ctxs, nb::handle compression_params, size_t memory_budget) {
        const LoggerScope log(logger);
        const ModuleOptions options = options_from(data_names, label_names, context, work_load_list, fixed_param_names,
                                                   state_names, group2ctxs, compression_params, memory_budget);
        try {
          new (self.p) PythonModule<Module>(symbol, options);
        } catch (const Error& error) {
          throw nb::value_error(error.what());  // names that are not the network's
        }
        self.h.attr("logger") = logger.is_none() ? nb::module_::import_("logging") : logger;
      },
      nb::arg("symbol"), nb::arg("data_names").none() = nb::make_tuple("data"),
      nb::arg("label_names").none() = nb::make_tuple("softmax_label"), nb::arg("logger").none() = nb::none(),
      nb::arg("context").none() = nb::none(), nb::arg("work_load_list").none() = nb::none(),
      nb::arg("fixed_param_names").none() = nb::none(), nb::arg("state_names").none() = nb::none(),
      nb::arg("group2ctxs").none() = nb::none(), nb::arg("compression_params").none() = nb::none(),
      nb::arg("memory_budget") = 0,
      "memory_budget: bytes of working memory that training should need at most on each context, by recomputing in "
      "backward what forward computed; 0 for no limit.");
  bind_steps(type);
  bind_files_of(type);
  bind_inside(type);
  m.def(
      "_create_kvstore",
      [](nb::handle kvstore, size_t devices, nb::handle arg_params) {
        const StoreChoice choice = choose_kvstore(kvstore_from(kvstore), devices, named_arrays_from(arg_params));
        return nb::make_tuple(to_python(choice.store), choice.update_on_kvstore);
      },
      nb::arg("kvstore").none(), nb::arg("num_device"), nb::arg("arg_params").none());
}

}  // namespace symbind::python
