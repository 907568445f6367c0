#include "symbind/train/module.h"

#include "bindings.h"
#include "module_steps.h"

namespace symbind::python {
namespace {

ModuleOptions options_from(nb::handle data_names, nb::handle label_names, nb::handle context, nb::handle work_load_list,
                           nb::handle fixed_param_names, nb::handle state_names, nb::handle group2ctxs,
                           nb::handle compression_params, size_t memory_budget, nb::handle compute_dtype) {
  ModuleOptions options;
  options.data_names = names_from(data_names);
  options.label_names = names_from(label_names);
  options.context = context.is_none() ? std::vector<Context>{cpu()} : contexts_from(context);
  set_training_options(options, work_load_list, fixed_param_names, state_names, group2ctxs, compression_params,
                       memory_budget, compute_dtype);
  return options;
}

// Anything that looks like a batch; a list of them is one per context.
void forward(nb::pointer_and_handle<Module> module, nb::handle data_batch, std::optional<Truth> is_train) {
  Module& self = *module.p;
  const KeeperScope making(module.h);
  if (PyList_Check(data_batch.ptr())) {
    std::vector<DataBatch> batches;
    for (nb::handle item : data_batch) batches.push_back(batch_from(item));
    ReleaseGil release;
    return self.forward(batches, flag(is_train));
  }
  const DataBatch batch = batch_from(data_batch);
  ReleaseGil release;
  self.Module::forward(batch, flag(is_train));
}

// The module's parameters on the CPU: zeros between bind and init_params, None before.
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

void bind_steps(ModuleClass<Module>& type) {
  type.def(
          "get_params",
          [](Module& self) {
            const BaseModule::Params params = self.Module::get_params();
            return nb::make_tuple(dict_in_order(self.param_names(), params.arg_params),
                                  dict_in_order(self.aux_names(), params.aux_params));
          },
          "(arg_params, aux_params) on the CPU, fetched from the devices if they have changed there.")
      .def(
          "prepare",
          [](Module& self, nb::handle data_batch, nb::handle) {
            const DataBatch batch = batch_from(data_batch);
            ReleaseGil release;
            self.Module::prepare(batch);
          },
          nb::arg("data_batch"), nb::arg("sparse_row_id_fn").none() = nb::none(),
          "Starts to copy the batch of the next forward to GPUs, which may still compute.")
      .def("forward", &forward, nb::arg("data_batch"), nb::arg("is_train").none() = nb::none(),
           "Runs the network on a batch; a batch of other shapes reshapes the module. is_train=None: as bound.")
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
          nb::arg("shared_module"), "Shares the optimizer, the store and the updater of another module.")
      .def_prop_ro("loss_scale", &Module::loss_scale, nb::call_guard<ReleaseGil>(),
                   "By what the loss is multiplied in float16 (compute_dtype); 1.0 where the loss is not scaled.");
  def_steps<Module>(type);
  def_results<Module>(type, [](Module& self) -> Module& { return self; });
}

void bind_files_of(ModuleClass<Module>& type) {
  type.def(
          "save_checkpoint",
          [](nb::handle self, const std::string& prefix, int epoch, Truth save_optimizer_states, bool) {
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

// An object inside the module keeps the module alive while Python refers to it.
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

// Its arrays are those after the update, which fit() may have left to the next call of the module.
nb::object exec_group_of(nb::pointer_and_handle<Module> self) {
  if (self.p->has_unfinished_update()) {
    const ReleaseGil release;
    self.p->finish_update();
  }
  return part<&Module::exec_group>(self);
}

// Names that scripts read although they start with an underscore.
void bind_inside(ModuleClass<Module>& type) {
  type.def_prop_ro(
          "symbol", [](const Module& self) { return self.Module::symbol(); }, "The network.")
      .def_prop_ro("_symbol", [](const Module& self) { return self.Module::symbol(); })
      .def_prop_ro("_exec_group", &exec_group_of)
      .def_prop_ro("_param_names", &Module::param_names)
      .def_prop_ro("_aux_names", &Module::aux_names)
      .def_prop_ro("_output_names", [](const Module& self) { return self.Module::output_names(); })
      .def_prop_ro("_data_names", [](const Module& self) { return self.options().data_names; })
      .def_prop_ro("_label_names", [](const Module& self) { return self.options().label_names; })
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
      .def_prop_ro("_total_exec_bytes",
                   [](const Module& self) { return self.exec_group() ? self.exec_group()->total_exec_bytes() : 0; });
  def_training_options<Module>(type);
}

}  // namespace

void bind_module(nb::module_& m) {
  ModuleClass<Module> type(m, "Module", nb::type_slots(collector_slots),
                           "A network with its parameters, its optimizer and its devices.");
  type.def(
      "__init__",
      [](nb::pointer_and_handle<Module> self, const Symbol& symbol, nb::handle data_names, nb::handle label_names,
         nb::object logger, nb::handle context, nb::handle work_load_list, nb::handle fixed_param_names,
         nb::handle state_names, nb::handle group2ctxs, nb::handle compression_params, size_t memory_budget,
         nb::handle compute_dtype) {
        const LoggerScope log(logger);
        const ModuleOptions options =
            options_from(data_names, label_names, context, work_load_list, fixed_param_names, state_names, group2ctxs,
                         compression_params, memory_budget, compute_dtype);
        try {
          new (self.p) PythonModule<Module>(symbol, options);
        } catch (const Error& error) {
          throw ValueError(error.what());  // names that the network does not have
        }
        self.h.attr("logger") = logger.is_none() ? nb::module_::import_("logging") : logger;
      },
      nb::arg("symbol"), nb::arg("data_names").none() = nb::make_tuple("data"),
      nb::arg("label_names").none() = nb::make_tuple("softmax_label"), nb::arg("logger").none() = nb::none(),
      nb::arg("context").none() = nb::none(), nb::arg("work_load_list").none() = nb::none(),
      nb::arg("fixed_param_names").none() = nb::none(), nb::arg("state_names").none() = nb::none(),
      nb::arg("group2ctxs").none() = nb::none(), nb::arg("compression_params").none() = nb::none(),
      nb::arg("memory_budget") = 0, nb::arg("compute_dtype").none() = nb::none(),
      "memory_budget: bytes of working memory that training should need at most on each context, by recomputing in "
      "backward what forward computed; 0 for no limit. compute_dtype: \"float16\" or \"bfloat16\" for a float32 "
      "network "
      "that computes in this type where that is safe; parameters, outputs and checkpoints stay float32.");
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
