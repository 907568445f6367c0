// Updaters: an optimizer with the states of what it has updated.
#include "symbind/optim/updater.h"

#include "symbind/core/error.h"

#include "bindings.h"
#include "convert.h"
#include "optimizer.h"

namespace symbind::python {
namespace {

void call_updater(Updater& self, nb::handle index, nb::handle grad, nb::handle weight) {
  std::vector<Updater::Item> items;
  if (is_list(index)) {
    const std::vector<ParamKey> keys = keys_from(index);
    const std::vector<NDArray> grads = arrays_from(grad), weights = arrays_from(weight);
    require(grads.size() == keys.size() && weights.size() == keys.size(),
            "[updater] takes one gradient and weight per index: ", keys.size(), " indices, ", grads.size(),
            " gradients, ", weights.size(), " weights");
    for (size_t i = 0; i < keys.size(); ++i) items.push_back({keys[i], grads[i], weights[i]});
  } else {
    items.push_back({key_from(index), one_array(grad, "grad"), one_array(weight, "weight")});
  }
  ReleaseGil release;
  if (items.size() == 1)
    self(items[0].key, items[0].grad, items[0].weight);
  else
    self(items);
}

nb::dict states_of(const Updater& self) {
  nb::dict dict;
  for (const auto& [key, state] : self.states()) dict[to_python(key)] = to_python(state);
  return dict;
}

void set_states_of(Updater& self, const nb::dict& states) {
  std::vector<std::pair<ParamKey, StateTree>> trees;
  for (auto [key, state] : states) trees.emplace_back(key_from(key), state_from(state));
  self.clear_states();
  for (auto& [key, state] : trees) self.set_state(key, std::move(state));
}

}  // namespace

void bind_updater(nb::module_& m) {
  nb::class_<Updater>(m, "Updater", nb::dynamic_attr(), nb::is_weak_referenceable(), nb::type_slots(collector_slots),
                      "An optimizer with the states of the parameters it has seen: updater(index, grad, weight).")
      .def(
          "__init__",
          [](nb::pointer_and_handle<Updater> self, nb::handle optimizer) {
            new (self.p) Updater(optimizer_from(optimizer, self.h));
          },
          nb::arg("optimizer").none())
      .def("__call__", &call_updater, nb::arg("index").none(), nb::arg("grad").none(), nb::arg("weight").none())
      .def_prop_ro("optimizer",
                   [](nb::pointer_and_handle<Updater> self) {
                     nb::object optimizer = to_python(self.p->optimizer());
                     keep_whole(optimizer, self.h);
                     return optimizer;
                   })
      .def("_get_states_dict", &states_of)
      .def("_set_states_dict", &set_states_of)
      .def(
          "get_states",
          [](const Updater& self, bool dump_optimizer) {
            const std::string bytes = self.get_states(dump_optimizer);
            return nb::bytes(bytes.data(), bytes.size());
          },
          nb::arg("dump_optimizer") = false, "The bytes of a .states file.")
      .def(
          "set_states",
          [](Updater& self, const nb::bytes& bytes) {
            self.set_states({bytes.c_str(), bytes.size()});
          },
          nb::arg("states"))
      .def(
          "sync_state_context",
          [](const Updater&, nb::handle state, Context context) {
            const auto moved = [&](auto&& again, StateTree tree) -> StateTree {
              if (tree.array) tree.array = tree.array.as_in_context(context);
              for (StateTree& part : tree.tuple) part = again(again, std::move(part));
              return tree;
            };
            return to_python(moved(moved, state_from(state)));
          },
          nb::arg("state").none(), nb::arg("context"), "The state with its arrays in that context.");
}

}  // namespace symbind::python
