#include "symbind/train/executor_group.h"

#include "batch.h"
#include "bindings.h"
#include "convert.h"
#include "executor_group.h"
#include "metric.h"
#include "monitor.h"

namespace symbind::python {
namespace {

using Group = DataParallelExecutorGroup;

nb::object slice_of(const BatchSlice& slice) {
  return nb::steal(PySlice_New(nb::int_(slice.begin).ptr(), nb::int_(slice.end).ptr(), nullptr));
}

nb::list list_of(const std::vector<BatchSlice>& slices) {
  nb::list list;
  for (const BatchSlice& slice : slices) list.append(slice_of(slice));
  return list;
}

nb::list sliced_lists(const std::vector<std::vector<Group::Sliced>>& arrays) {
  nb::list lists;
  for (const auto& per_device : arrays) {
    nb::list list;
    for (const auto& [slice, array] : per_device) list.append(nb::make_tuple(slice_of(slice), array));
    lists.append(list);
  }
  return lists;
}

}  // namespace

nb::list list_of(const std::vector<std::pair<std::string, Shape>>& shapes) {
  nb::list list;
  for (const auto& [name, shape] : shapes) list.append(nb::make_tuple(name, tuple_of(shape)));
  return list;
}

std::vector<std::map<std::string, Context>> group2ctxs_from(nb::handle value, size_t contexts) {
  std::vector<std::map<std::string, Context>> result;
  if (value.is_none()) return result;
  const auto one = [](nb::handle dict, size_t index) {
    std::map<std::string, Context> groups;
    for (auto [name, context] : dict_from(dict, "group2ctxs")) {
      const auto listed = contexts_from(context);
      if (listed.empty()) throw ValueError("a group in group2ctxs has no context");
      groups[nb::cast<std::string>(name)] = listed[std::min(index, listed.size() - 1)];
    }
    return groups;
  };
  if (nb::isinstance<nb::dict>(value)) {
    for (size_t i = 0; i < contexts; ++i) result.push_back(one(value, i));
  } else {
    size_t index = 0;
    for (nb::handle item : value) result.push_back(one(item, index++));
  }
  return result;
}

void bind_executor_group(nb::module_& m) {
  m.def("_split_input_slice", [](int64_t batch_size, const std::vector<double>& work_load_list) {
    return list_of(split_input_slice(batch_size, work_load_list));
  });
  nb::class_<Group>(m, "DataParallelExecutorGroup", nb::dynamic_attr(), nb::type_slots(collector_slots),
                    "One network on several devices, each with a slice of every batch.")
      .def(
          "__init__",
          [](Group* self, const Symbol& symbol, nb::handle contexts, nb::handle workload, nb::handle data_shapes,
             nb::handle label_shapes, nb::handle param_names, Truth for_training, Truth inputs_need_grad,
             std::shared_ptr<Group> shared_group, nb::handle, nb::handle fixed_param_names, nb::handle grad_req,
             nb::handle state_names, nb::handle group2ctxs) {
            const auto on = contexts_from(contexts);
            new (self) Group(symbol, {.contexts = on,
                                      .workload = workload.is_none() ? std::vector<double>{}
                                                                     : nb::cast<std::vector<double>>(workload),
                                      .data_shapes = descs_from(data_shapes),
                                      .label_shapes = descs_from(label_shapes),
                                      .param_names = names_from(param_names),
                                      .for_training = for_training,
                                      .inputs_need_grad = inputs_need_grad,
                                      .shared_group = std::move(shared_group),
                                      .fixed_param_names = names_from(fixed_param_names),
                                      .grad_req = grad_reqs_from(grad_req),
                                      .state_names = names_from(state_names),
                                      .group2ctxs = group2ctxs_from(group2ctxs, on.size())});
          },
          nb::arg("symbol"), nb::arg("contexts"), nb::arg("workload").none(), nb::arg("data_shapes"),
          nb::arg("label_shapes").none(), nb::arg("param_names"), nb::arg("for_training"), nb::arg("inputs_need_grad"),
          nb::arg("shared_group").none() = nb::none(), nb::arg("logger").none() = nb::none(),
          nb::arg("fixed_param_names").none() = nb::none(), nb::arg("grad_req") = "write",
          nb::arg("state_names").none() = nb::none(), nb::arg("group2ctxs").none() = nb::none())
      .def(
          "reshape",
          [](Group& self, nb::handle data, nb::handle label) { self.reshape(descs_from(data), descs_from(label)); },
          nb::arg("data_shapes"), nb::arg("label_shapes").none())
      .def(
          "set_params",
          [](Group& self, nb::handle args, nb::handle aux, Truth allow_extra) {
            self.set_params(named_arrays_from(args), named_arrays_from(aux), allow_extra);
          },
          nb::arg("arg_params"), nb::arg("aux_params"), nb::arg("allow_extra") = false)
      .def(
          "get_params",
          [](const Group& self, nb::dict arg_params, nb::dict aux_params) {
            NamedArrays args = named_arrays_from(arg_params), aux = named_arrays_from(aux_params);
            self.get_params(args, aux);
            for (const auto& [name, array] : args) arg_params[name.c_str()] = array;
            for (const auto& [name, array] : aux) aux_params[name.c_str()] = array;
          },
          nb::arg("arg_params"), nb::arg("aux_params"), "Writes the mean over the devices into both dicts.")
      .def(
          "forward",
          [](nb::pointer_and_handle<Group> self, nb::handle batch, std::optional<Truth> is_train) {
            const DataBatch converted = batch_from(batch);
            const KeeperScope making(keeper_of(self.h));
            ReleaseGil release;
            self.p->forward(converted, flag(is_train));
          },
          nb::arg("data_batch"), nb::arg("is_train").none() = nb::none())
      .def(
          "backward",
          [](Group& self, nb::handle out_grads) {
            const auto grads = arrays_from(out_grads);
            ReleaseGil release;
            self.backward(grads);
          },
          nb::arg("out_grads").none() = nb::none())
      .def(
          "get_outputs",
          [](const Group& self, Truth merge, int64_t begin, std::optional<int64_t> end) {
            const nb::list all = merge ? list_of(self.get_merged_outputs()) : list_of(self.get_outputs());
            return all.attr("__getitem__")(nb::slice(nb::int_(begin), nb::cast(end), nb::none()));
          },
          nb::arg("merge_multi_context") = true, nb::arg("begin") = 0, nb::arg("end").none() = nb::none())
      .def(
          "get_input_grads",
          [](const Group& self, Truth merge) {
            return merge ? list_of(self.get_merged_input_grads()) : list_of(self.get_input_grads());
          },
          nb::arg("merge_multi_context") = true)
      .def(
          "get_states",
          [](const Group& self, Truth merge) {
            return merge ? list_of(self.get_merged_states()) : list_of(self.get_states());
          },
          nb::arg("merge_multi_context") = true)
      .def(
          "set_states",
          [](Group& self, nb::handle states, std::optional<double> value) {
            if (states.is_none() == !value.has_value()) throw ValueError("set_states takes either states or a value");
            if (value) return self.set_states(*value);
            Group::PerDevice per_device;
            for (nb::handle state : states)
              per_device.push_back(nb::isinstance<NDArray>(state) ? std::vector{nb::cast<NDArray>(state)}
                                                                  : arrays_from(state));
            self.set_states(per_device);
          },
          nb::arg("states").none() = nb::none(), nb::arg("value").none() = nb::none())
      .def("get_output_shapes", [](const Group& self) { return list_of(self.get_output_shapes()); })
      .def(
          "update_metric",
          [](const Group& self, nb::handle metric, nb::handle labels, Truth pre_sliced) {
            const EvalMetricPtr converted = metric_from(metric);
            self.update_metric(*converted, arrays_from(labels), pre_sliced);
          },
          nb::arg("eval_metric"), nb::arg("labels").none(), nb::arg("pre_sliced") = false)
      .def(
          "install_monitor",
          [](nb::pointer_and_handle<Group> self, nb::handle mon) {
            self.p->install_monitor(*monitor_from(mon, keeper_of(self.h)));
          },
          nb::arg("mon"))
      .def_prop_ro("symbol", &Group::symbol)
      .def_prop_ro("contexts", &Group::contexts)
      .def_prop_ro("workload", &Group::workload)
      .def_prop_ro("batch_size", &Group::batch_size)
      .def_prop_ro("slices", [](const Group& self) { return list_of(self.slices()); })
      .def_prop_ro("execs",
                   [](nb::pointer_and_handle<Group> self) {
                     nb::list list;
                     for (const ExecutorPtr& executor : self.p->execs()) {
                       list.append(executor);
                       keep_whole(list[list.size() - 1], self.h);
                     }
                     return list;
                   })
      .def_prop_ro("data_shapes", [](const Group& self) { return list_of(self.data_shapes()); })
      .def_prop_ro("label_shapes",
                   [](const Group& self) -> nb::object {
                     return self.label_shapes().empty() ? nb::none() : nb::object(list_of(self.label_shapes()));
                   })
      .def_prop_ro("data_names",
                   [](const Group& self) {
                     std::vector<std::string> names;
                     for (const DataDesc& desc : self.data_shapes()) names.push_back(desc.name);
                     return names;
                   })
      .def_prop_ro("label_names",
                   [](const Group& self) {
                     std::vector<std::string> names;
                     for (const DataDesc& desc : self.label_shapes()) names.push_back(desc.name);
                     return names;
                   })
      .def_prop_ro("data_layouts", &Group::data_layouts)
      .def_prop_ro("label_layouts",
                   [](const Group& self) -> nb::object {
                     return self.label_shapes().empty() ? nb::none() : nb::cast(self.label_layouts());
                   })
      .def_prop_ro("grad_req",
                   [](const Group& self) {
                     static constexpr std::array<const char*, 3> texts = {"null", "write", "add"};
                     nb::dict dict;
                     for (size_t i = 0; i < self.arg_names().size(); ++i)
                       dict[self.arg_names()[i].c_str()] = texts[static_cast<size_t>(self.grad_req()[i])];
                     return dict;
                   })
      .def_prop_ro("fixed_param_names", &Group::fixed_param_names)
      .def_prop_ro("num_outputs", [](const Group& self) { return self.output_names().size(); })
      .def_prop_ro("output_layouts", &Group::output_layouts)
      .def_prop_ro("param_names", &Group::param_names)
      .def_prop_ro("arg_names", &Group::arg_names)
      .def_prop_ro("aux_names", &Group::aux_names)
      .def_prop_ro("state_names", &Group::state_names)
      .def_prop_ro("output_names", &Group::output_names)
      .def_prop_ro("data_arrays", [](const Group& self) { return sliced_lists(self.data_arrays()); })
      .def_prop_ro("label_arrays",
                   [](const Group& self) -> nb::object {
                     return self.label_shapes().empty() ? nb::none() : nb::object(sliced_lists(self.label_arrays()));
                   })
      .def_prop_ro("shared_data_arrays",
                   [](const Group& self) {
                     nb::list list;
                     for (const auto& arrays : self.shared_data_arrays()) list.append(dict_of(*arrays));
                     return list;
                   })
      .def_prop_ro("param_arrays", [](const Group& self) { return list_of(self.param_arrays()); })
      .def_prop_ro("grad_arrays",
                   [](const Group& self) -> nb::object {
                     return self.for_training() ? nb::object(list_of(self.grad_arrays())) : nb::none();
                   })
      .def_prop_ro("aux_arrays", [](const Group& self) { return list_of(self.aux_arrays()); })
      .def_prop_ro("state_arrays", [](const Group& self) { return list_of(self.state_arrays()); })
      .def_prop_ro("input_grad_arrays",
                   [](const Group& self) -> nb::object {
                     return self.inputs_need_grad() ? nb::object(list_of(self.input_grad_arrays())) : nb::none();
                   })
      .def_prop_ro("for_training", &Group::for_training)
      .def_prop_ro("inputs_need_grad", &Group::inputs_need_grad)
      .def_prop_ro("_total_exec_bytes", &Group::total_exec_bytes);
}

}  // namespace symbind::python
