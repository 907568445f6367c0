// The methods of every kind of module that is written in C++; each kind adds its own. A call runs the step of the class
// itself: a class in Python that overrides one calls it through super().
#pragma once

#include "symbind/train/base_module.h"

#include "batch.h"
#include "executor_group.h"
#include "initializer.h"
#include "kvstore.h"
#include "log.h"
#include "metric.h"
#include "monitor.h"
#include "optimizer.h"
#include "python_module.h"

namespace symbind::python {

inline nb::object labels_or_none(const std::vector<DataDesc>& shapes) {
  return shapes.empty() ? nb::none() : nb::object(list_of(shapes));
}

inline DataParallelExecutorGroup::PerDevice per_device_from(nb::handle value) {
  DataParallelExecutorGroup::PerDevice lists;
  for (nb::handle item : value) lists.push_back(arrays_from(item));
  return lists;
}

// What the options of Module and of BucketingModule have in common; their context is set.
template <class Options>
void set_training_options(Options& options, nb::handle work_load_list, nb::handle fixed_param_names,
                          nb::handle state_names, nb::handle group2ctxs, nb::handle compression_params,
                          size_t memory_budget, nb::handle compute_dtype) {
  if (!work_load_list.is_none()) options.work_load_list = nb::cast<std::vector<double>>(work_load_list);
  options.fixed_param_names = names_from(fixed_param_names);
  options.state_names = names_from(state_names);
  options.group2ctxs = group2ctxs_from(group2ctxs, options.context.size());
  options.compression_params = attributes_of(compression_params);
  options.compile_options.memory_budget = memory_budget;
  if (!compute_dtype.is_none()) options.compute_dtype = dtype_from(compute_dtype);
}

template <class Kind>
using ModuleClass = nb::class_<Kind, BaseModule, PythonModule<Kind>>;

// The same without compute_dtype, under the names that scripts read.
template <class Kind>
void def_training_options(ModuleClass<Kind>& type) {
  type.def_prop_ro("_context", [](const Kind& self) { return self.options().context; })
      .def_prop_ro("_work_load_list",
                   [](const Kind& self) {
                     const auto& given = self.options().work_load_list;
                     return given.empty() ? std::vector<double>(self.options().context.size(), 1) : given;
                   })
      .def_prop_ro("_fixed_param_names", [](const Kind& self) { return self.options().fixed_param_names; })
      .def_prop_ro("_state_names", [](const Kind& self) { return self.options().state_names; })
      .def_prop_ro("_group2ctxs", [](const Kind& self) { return self.options().group2ctxs; })
      .def_prop_ro("_compression_params", [](const Kind& self) { return self.options().compression_params; })
      .def_prop_ro("_memory_budget", [](const Kind& self) { return self.options().compile_options.memory_budget; });
}

template <class Kind>
void def_bind(ModuleClass<Kind>& type) {
  type.def(
      "bind",
      [](nb::handle self, nb::handle data_shapes, nb::handle label_shapes, Truth for_training, Truth inputs_need_grad,
         Truth force_rebind, BaseModule* shared_module, nb::handle grad_req) {
        const LoggerScope log(logger_of(self));
        auto& module = nb::cast<Kind&>(self);
        const std::vector<DataDesc> data = descs_from(data_shapes), label = descs_from(label_shapes);
        const BindArgs args{.for_training = for_training,
                            .inputs_need_grad = inputs_need_grad,
                            .force_rebind = force_rebind,
                            .shared_module = shared_module,
                            .grad_req = grad_reqs_from(grad_req)};
        {
          ReleaseGil release;
          module.Kind::bind(data, label, args);
        }
        self.attr("_grad_req") = grad_req;
      },
      nb::arg("data_shapes"), nb::arg("label_shapes").none() = nb::none(), nb::arg("for_training") = true,
      nb::arg("inputs_need_grad") = false, nb::arg("force_rebind") = false,
      nb::arg("shared_module").none() = nb::none(), nb::arg("grad_req") = "write",
      "Allocates executors for the given shapes, one per context. An already bound module is left as it is unless "
      "force_rebind is set.");
}

template <class Kind>
void def_params(ModuleClass<Kind>& type) {
  type.def(
          "init_params",
          [](nb::handle self, nb::handle initializer, nb::handle arg_params, nb::handle aux_params, Truth allow_missing,
             Truth force_init, Truth allow_extra) {
            const LoggerScope log(logger_of(self));
            auto& module = nb::cast<Kind&>(self);
            const InitParamsArgs args{.initializer = initializer_from(initializer),
                                      .arg_params = optional_arrays(arg_params),
                                      .aux_params = optional_arrays(aux_params),
                                      .allow_missing = allow_missing,
                                      .force_init = force_init,
                                      .allow_extra = allow_extra};
            ReleaseGil release;
            module.Kind::init_params(args);
          },
          nb::arg("initializer").none() = nb::none(), nb::arg("arg_params").none() = nb::none(),
          nb::arg("aux_params").none() = nb::none(), nb::arg("allow_missing") = false, nb::arg("force_init") = false,
          nb::arg("allow_extra") = false,
          "Initializes parameters and auxiliary states: from arg_params and aux_params where given, else by the "
          "initializer.")
      .def(
          "set_params",
          [](nb::handle self, nb::handle arg_params, nb::handle aux_params, Truth allow_missing, Truth force_init,
             Truth allow_extra) {
            const LoggerScope log(logger_of(self));
            const NamedArrays args = named_arrays_from(arg_params), aux = named_arrays_from(aux_params);
            auto& module = nb::cast<Kind&>(self);
            ReleaseGil release;
            module.Kind::set_params(args, aux, allow_missing, force_init, allow_extra);
          },
          nb::arg("arg_params").none(), nb::arg("aux_params").none(), nb::arg("allow_missing") = false,
          nb::arg("force_init") = true, nb::arg("allow_extra") = false,
          "Sets parameters and auxiliary states; names that are missing fail unless allow_missing is set.")
      .def(
          "init_optimizer",
          [](nb::handle self, nb::handle kvstore, nb::handle optimizer, nb::handle optimizer_params, Truth force_init) {
            const LoggerScope log(logger_of(self));
            auto& module = nb::cast<Kind&>(self);
            const nb::handle keeper = keeper_of_optimizer(self, kvstore);
            const InitOptimizerArgs args{.kvstore = kvstore_from(kvstore, self),
                                         .optimizer = optimizer_arg_from(optimizer, keeper),
                                         .optimizer_params = optimizer_params_from(optimizer_params, keeper),
                                         .force_init = force_init};
            ReleaseGil release;  // a store may be busy with a Python updater
            module.Kind::init_optimizer(args);
          },
          nb::arg("kvstore").none() = "local", nb::arg("optimizer") = "sgd",
          nb::arg("optimizer_params").none() = nb::make_tuple(nb::make_tuple("learning_rate", 0.01)),
          nb::arg("force_init") = false,
          "Sets the optimizer, given by name or as an object, and the store that exchanges gradients.");
}

template <class Kind>
void def_running(ModuleClass<Kind>& type) {
  type.def(
          "backward",
          [](Kind& self, nb::handle out_grads) {
            const auto grads = arrays_from(out_grads);
            ReleaseGil release;
            self.Kind::backward(grads);
          },
          nb::arg("out_grads").none() = nb::none(),
          "Computes the gradients of the last forward, from out_grads where the network has outputs that are no "
          "losses.")
      .def(
          "forward_backward",
          [](nb::pointer_and_handle<Kind> self, nb::handle data_batch) {
            const DataBatch batch = batch_for(*self.p, data_batch);
            const KeeperScope making(self.h);
            ReleaseGil release;
            self.p->Kind::forward_backward(batch);
          },
          nb::arg("data_batch"), "forward() in training mode, then backward().")
      .def(
          "update",
          [](Kind& self) {
            ReleaseGil release;
            self.Kind::update();
          },
          "Updates the parameters with the gradients of the last backward.")
      .def(
          "install_monitor",
          [](nb::pointer_and_handle<Kind> self, nb::handle mon) {
            self.p->Kind::install_monitor(*monitor_from(mon, keeper_of(self.h)));
          },
          nb::arg("mon"), "Installs a monitor on all executors.");
}

template <class Kind>
void def_descriptions(ModuleClass<Kind>& type) {
  type.def_prop_ro(
          "data_names", [](const Kind& self) { return self.Kind::data_names(); }, "The names of the data inputs.")
      .def_prop_ro(
          "label_names", [](const Kind& self) { return self.Kind::label_names(); }, "The names of the label inputs.")
      .def_prop_ro(
          "output_names", [](const Kind& self) { return self.Kind::output_names(); }, "The names of the outputs.")
      .def_prop_ro(
          "data_shapes", [](const Kind& self) { return list_of(self.Kind::data_shapes()); },
          "The data inputs as DataDesc, as bound.")
      .def_prop_ro(
          "label_shapes", [](const Kind& self) { return labels_or_none(self.Kind::label_shapes()); },
          "The label inputs as DataDesc, as bound, or None.")
      .def_prop_ro(
          "output_shapes", [](const Kind& self) { return list_of(self.Kind::output_shapes()); },
          "(name, shape) of each output.");
}

// bind, parameters, optimizer, backward, update, and what there is by name.
template <class Kind>
void def_steps(ModuleClass<Kind>& type) {
  def_bind<Kind>(type);
  def_params<Kind>(type);
  def_running<Kind>(type);
  def_descriptions<Kind>(type);
}

// Outputs, gradients of inputs and states by device or merged, where `module_of(self)` is the Module that has them.
template <class Kind, class ModuleOf>
void def_results(ModuleClass<Kind>& type, ModuleOf module_of) {
  type.def(
          "get_outputs",
          [module_of](Kind& self, Truth merge) {
            Module& module = module_of(self);
            return merge ? list_of(module.Module::get_outputs()) : list_of(module.get_outputs_per_device());
          },
          nb::arg("merge_multi_context") = true,
          "The outputs of the last forward: merged over the devices, or with merge_multi_context=False a list per "
          "output.")
      .def(
          "get_input_grads",
          [module_of](Kind& self, Truth merge) {
            Module& module = module_of(self);
            return merge ? list_of(module.Module::get_input_grads()) : list_of(module.get_input_grads_per_device());
          },
          nb::arg("merge_multi_context") = true,
          "The gradients with respect to the inputs; the module must be bound with inputs_need_grad=True.")
      .def(
          "get_states",
          [module_of](Kind& self, Truth merge) {
            const Module& module = module_of(self);
            return merge ? list_of(module.get_states()) : list_of(module.get_states_per_device());
          },
          nb::arg("merge_multi_context") = true, "The states, merged over the devices or as a list per state.")
      .def(
          "set_states",
          [module_of](Kind& self, nb::handle states, std::optional<double> value) {
            Module& module = module_of(self);
            if (states.is_none() == !value.has_value()) throw ValueError("set_states takes either states or a value");
            if (value) return module.set_states(*value);
            const nb::list list(states);
            if (list.size() > 0 && nb::isinstance<NDArray>(list[0])) return module.set_states(arrays_from(states));
            module.set_states(per_device_from(states));
          },
          nb::arg("states").none() = nb::none(), nb::arg("value").none() = nb::none(),
          "Sets the states: from arrays, or to one value.")
      .def(
          "update_metric",
          [module_of](Kind& self, nb::handle eval_metric, nb::handle labels, Truth pre_sliced) {
            Module& module = module_of(self);
            const EvalMetricPtr metric = metric_from(eval_metric);
            if (pre_sliced) return module.exec_group()->update_metric(*metric, per_device_from(labels));
            module.Module::update_metric(*metric, arrays_from(labels), false);
          },
          nb::arg("eval_metric"), nb::arg("labels").none(), nb::arg("pre_sliced") = false,
          "Updates a metric with the outputs of the last forward and the labels.");
}

}  // namespace symbind::python
