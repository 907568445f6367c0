// The store of values. It holds a lock while it works, and its updater may be written in Python: so no call holds the
// GIL while it waits for the lock.
#include "kvstore.h"

#include "symbind/core/error.h"
#include "symbind/core/text.h"

#include "bindings.h"
#include "convert.h"
#include "optimizer.h"

namespace symbind::python {
namespace {

struct KeysAndValues {
  KVStore::Keys keys;
  KVStore::Values values;
};

// One key with an array or a list of arrays, or a list of keys with one of these for each.
KeysAndValues keys_and_values(nb::handle key, nb::handle value, const char* call) {
  KeysAndValues result;
  const auto add = [&](nb::handle one, nb::handle arrays) {
    if (!nb::isinstance<NDArray>(arrays) && !is_list(arrays))
      throw TypeError(join("KVStore.", call, " takes an NDArray or a list of NDArrays for each key, not ",
                           nb::repr(arrays).c_str()));
    result.keys.push_back(key_from(one));
    result.values.push_back(arrays_from(arrays));
  };
  if (!is_list(key)) {
    add(key, value);
    return result;
  }
  if (!is_list(value) || nb::len(key) != nb::len(value))
    throw ValueError(join("KVStore.", call, " takes one value per key: ", nb::len(key), " keys, ",
                          is_list(value) ? nb::len(value) : 1, " values"));
  for (size_t i = 0; i < nb::len(key); ++i) add(nb::object(key[i]), nb::object(value[i]));
  return result;
}

void init(KVStore& self, nb::handle key, nb::handle value) {
  KVStore::Keys keys;
  std::vector<NDArray> values;
  const KeysAndValues given = keys_and_values(key, value, "init");
  for (size_t i = 0; i < given.keys.size(); ++i)
    for (const NDArray& array : given.values[i]) {
      keys.push_back(given.keys[i]);
      values.push_back(array);
    }
  ReleaseGil release;
  self.init(keys, values);
}

void push(KVStore& self, nb::handle key, nb::handle value, int priority) {
  const KeysAndValues given = keys_and_values(key, value, "push");
  ReleaseGil release;
  self.push(given.keys, given.values, priority);
}

void pull(KVStore& self, nb::handle key, nb::handle out, int priority, bool /*ignore_sparse*/) {
  if (out.is_none()) throw TypeError("KVStore.pull needs arrays to write to: out");
  const KeysAndValues outs = keys_and_values(key, out, "pull");
  ReleaseGil release;
  self.pull(outs.keys, outs.values, priority);
}

void pushpull(KVStore& self, nb::handle key, nb::handle value, nb::handle out, int priority) {
  const KeysAndValues values = keys_and_values(key, value, "pushpull");
  const KeysAndValues outs = keys_and_values(key, out.is_none() ? value : out, "pushpull");
  ReleaseGil release;
  self.pushpull(values.keys, values.values, outs.values, priority);
}

// A list of arrays for one key has one array per device, all with the same values.
void broadcast(KVStore& self, nb::handle key, nb::handle value, nb::handle out, int priority) {
  const KeysAndValues given = keys_and_values(key, value, "broadcast");
  const KeysAndValues outs = keys_and_values(key, out, "broadcast");
  std::vector<NDArray> first;
  for (size_t i = 0; i < given.keys.size(); ++i) {
    if (given.values[i].empty()) throw ValueError("KVStore.broadcast takes an NDArray for each key");
    first.push_back(given.values[i][0]);
  }
  ReleaseGil release;
  self.broadcast(given.keys, first, outs.values, priority);
}

void set_command_handler(nb::pointer_and_handle<KVStore> self, nb::object handler) {
  if (!PyCallable_Check(handler.ptr())) throw wrong_type("a handler is a function (head, body)", handler);
  KVStore::CommandHandler function = [held = Held(std::move(handler), keeper_of(self.h))](int head,
                                                                                          const std::string& body) {
    AcquireGil acquire;
    held.get()(head, body);
  };
  ReleaseGil release;
  self.p->set_command_handler(std::move(function));
}

void row_sparse_pull(KVStore& self, nb::handle key, nb::handle, int priority, nb::handle) {
  self.row_sparse_pull({is_list(key) && nb::len(key) ? key_from(nb::object(key[0])) : key_from(key)}, {}, {}, priority);
}

// Called with MXNet's arguments: the key as it was given, the sum of the pushed arrays, and the stored array to change.
void set_updater(nb::pointer_and_handle<KVStore> self, nb::object updater) {
  if (!PyCallable_Check(updater.ptr()))
    throw TypeError(join("an updater is a function (key, pushed, stored), not ", nb::repr(updater).c_str()));
  KVStore::UpdateFunction function = [held = Held(std::move(updater), keeper_of(self.h))](
                                         const ParamKey& key, const NDArray& pushed, const NDArray& stored) {
    AcquireGil acquire;
    held.get()(to_python(key), pushed, stored);
  };
  ReleaseGil release;
  self.p->set_updater(std::move(function));
}

bool is_capable(const std::string& capability, bool has_optimizer) {
  require(lower_case(capability) == "optimizer", "there is no capability '", capability,
          "': 'optimizer' is the only one");
  return has_optimizer;
}

}  // namespace

KVStoreArg kvstore_from(nb::handle value, nb::handle keeper) {
  if (value.is_none()) return nullptr;
  if (nb::isinstance<KVStore>(value)) return Held(nb::borrow(value), keeper).as<KVStore>();
  if (nb::isinstance<nb::str>(value)) return nb::cast<std::string>(value);
  throw TypeError(join("expected a store (mx.kv.create('local'), its name, or None), not ", nb::repr(value).c_str()));
}

nb::object to_python(const KVStorePtr& store) { return store ? nb::cast(store) : nb::none(); }

void bind_kvstore(nb::module_& m) {
  nb::class_<KVStore>(m, "KVStore", nb::dynamic_attr(), nb::is_weak_referenceable(), nb::type_slots(collector_slots),
                      "Values by key, pushed from and pulled to any number of arrays.")
      .def("init", &init, nb::arg("key").none(), nb::arg("value").none(), "Gives each key its first value.")
      .def("push", &push, nb::arg("key").none(), nb::arg("value").none(), nb::arg("priority") = 0,
           "The sum over a key's arrays goes to the updater, or without one replaces the value.")
      .def("pull", &pull, nb::arg("key").none(), nb::arg("out").none() = nb::none(), nb::arg("priority") = 0,
           nb::arg("ignore_sparse") = true, "Copies the value into each of the arrays.")
      .def("pushpull", &pushpull, nb::arg("key").none(), nb::arg("value").none(), nb::arg("out").none() = nb::none(),
           nb::arg("priority") = 0, "push, then pull into out, or into the pushed arrays.")
      .def("broadcast", &broadcast, nb::arg("key").none(), nb::arg("value").none(), nb::arg("out").none(),
           nb::arg("priority") = 0, "init, then pull.")
      .def("row_sparse_pull", &row_sparse_pull, nb::arg("key").none(), nb::arg("out").none() = nb::none(),
           nb::arg("priority") = 0, nb::arg("row_ids").none() = nb::none(), "Fails: arrays are dense here.")
      .def(
          "set_optimizer",
          [](nb::pointer_and_handle<KVStore> self, nb::handle optimizer) {
            OptimizerPtr given = optimizer_from(optimizer, keeper_of(self.h));
            ReleaseGil release;
            self.p->set_optimizer(std::move(given));
          },
          nb::arg("optimizer").none(), "The store updates its values with it from now on.")
      .def("_set_updater", &set_updater, nb::arg("updater").none())
      .def("set_updater", &set_updater, nb::arg("updater").none(),
           "The store updates its values with this function (key, pushed, stored) from now on.")
      .def(
          "set_gradient_compression",
          [](KVStore& self, const nb::dict& params) {
            const Attributes given = attributes_of(params);
            ReleaseGil release;
            self.set_gradient_compression(given);
          },
          nb::arg("compression_params"), "{'type': '2bit', 'threshold': 0.5}")
      .def_prop_ro("type", &KVStore::type, "The kind of store.")
      .def_prop_ro("rank", &KVStore::rank, "The number of this worker, from 0.")
      .def_prop_ro("num_workers", &KVStore::num_workers, "The number of workers.")
      .def("barrier", &KVStore::barrier, nb::call_guard<ReleaseGil>(), "Waits for all workers.")
      .def("_barrier", &KVStore::barrier, nb::call_guard<ReleaseGil>())
      .def_prop_ro("num_dead_node", &KVStore::num_dead_node, "The number of workers that were lost.")
      .def("send_command_to_servers", &KVStore::send_command_to_servers, nb::arg("head"), nb::arg("body"),
           nb::call_guard<ReleaseGil>(),
           "Calls the command handler of every owner of keys with these: the workers, or the servers of dist_async.")
      .def("_send_command_to_servers", &KVStore::send_command_to_servers, nb::arg("head"), nb::arg("body"),
           nb::call_guard<ReleaseGil>())
      .def("set_command_handler", &set_command_handler, nb::arg("handler").none(),
           "What send_command_to_servers of any worker calls here: a function (head, body).")
      .def(
          "is_capable",
          [](const KVStore& self, const std::string& capability) {
            return is_capable(capability, self.has_optimizer());
          },
          nb::arg("capability"), "Whether the store can do that: \"optimizer\".")
      // Of the class, as in MXNet: KVStore.is_capable("optimizer").
      .def("is_capable", [](const std::string& capability) { return is_capable(capability, true); })
      .def("save_optimizer_states", &KVStore::save_optimizer_states, nb::arg("fname"),
           nb::arg("dump_optimizer") = false, nb::call_guard<ReleaseGil>(),
           "Writes the states of the store's optimizer to a file.")
      .def("load_optimizer_states", &KVStore::load_optimizer_states, nb::arg("fname"), nb::call_guard<ReleaseGil>(),
           "Reads the states of the store's optimizer from a file.")
      .def("__repr__", [](const KVStore& self) { return join("<KVStore ", self.type(), ">"); });
  m.def(
      "create_kvstore", [](const std::string& type) { return KVStore::create(type); }, nb::arg("name") = "local",
      nb::call_guard<ReleaseGil>());
  m.def("leave_job", &KVStore::leave_job, nb::call_guard<ReleaseGil>(),
        "Says goodbye to the workers of a distributed job, and serves them until they have all done so.");
  m.def("serve_job", &KVStore::serve_job, nb::call_guard<ReleaseGil>(),
        "What a server does: holds the keys of the workers of a distributed job until they have all left it.");
}

}  // namespace symbind::python
