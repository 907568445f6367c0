#include "monitor.h"

#include "bindings.h"
#include "convert.h"

namespace symbind::python {
namespace {

// A number, an array, or several.
Statistic statistic_from(nb::handle value) {
  if (nb::isinstance<NDArray>(value)) return nb::cast<NDArray>(value);
  if (PyFloat_Check(value.ptr()) || PyLong_Check(value.ptr())) return nb::cast<double>(value);
  if (PyList_Check(value.ptr()) || PyTuple_Check(value.ptr())) {
    std::vector<NDArray> several;
    for (nb::handle item : value) several.push_back(array_from(item, cpu()));
    return several;
  }
  if (nb::hasattr(value, "__array__") || nb::hasattr(value, "__float__")) return array_from(value, cpu());
  throw TypeError(join("stat_func returns an NDArray, a list of them or a number, not ", nb::repr(value).c_str()));
}

StatFunc stat_func_from(nb::object function, nb::handle keeper) {
  if (function.is_none()) return {};
  if (!PyCallable_Check(function.ptr()))
    throw TypeError(join("stat_func must be callable: ", nb::repr(function).c_str(), " is not"));
  return [held = Held(std::move(function), keeper)](const NDArray& array) {
    AcquireGil acquire;
    return statistic_from(nb::object(held.get()(array)));
  };
}

// The statistic of another thread may request the GIL while it holds the monitor's lock: no thread may wait for that
// lock while it holds the GIL.
nb::list toc(Monitor& self) {
  std::vector<Monitor::Entry> entries;
  {
    ReleaseGil release;
    entries = self.toc();
  }
  nb::list list;
  for (const Monitor::Entry& entry : entries) list.append(nb::make_tuple(entry.step, entry.name, entry.value));
  return list;
}

std::vector<Monitor::Entry> entries_from(const nb::object& list) {
  std::vector<Monitor::Entry> entries;
  for (nb::handle item : list)
    entries.push_back(
        {nb::cast<int64_t>(item[0]), nb::str(nb::handle(item[1])).c_str(), nb::str(nb::handle(item[2])).c_str()});
  return entries;
}

bool is_native(nb::handle value) { return value.type().is(nb::type<Monitor>()); }

void toc_print(nb::handle self) {
  if (is_native(self)) {
    auto& monitor = nb::cast<Monitor&>(self);
    ReleaseGil release;
    return monitor.toc_print();
  }
  const auto entries = entries_from(self.attr("toc")());  // a subclass may have its own
  ReleaseGil release;
  Monitor::print(entries);
}

// A monitor written in Python.
class PythonMonitor final : public Monitor {
 public:
  PythonMonitor(nb::handle object, nb::handle keeper)
      : Monitor(1), object_(nb::borrow(object), keeper), keeper_(keeper) {}

  nb::object object() const { return object_.get(); }
  void install(Executor& executor) override { installer()(executor); }
  std::function<void(Executor&)> installer() const override {
    return [object = object_, keeper = keeper_](Executor& executor) {
      AcquireGil acquire;
      const nb::object wrapped = nb::cast(executor.shared_from_this());
      keep_whole(wrapped, keeper);
      object.get().attr("install")(wrapped);
    };
  }
  void tic() override {
    AcquireGil acquire;
    object_.get().attr("tic")();
  }
  std::vector<Entry> toc() override {
    AcquireGil acquire;
    return entries_from(object_.get().attr("toc")());
  }
  void toc_print() override {
    AcquireGil acquire;
    object_.get().attr("toc_print")();
  }

 private:
  Held object_;
  nb::handle keeper_;  // alive as long as the C++ part that stores this monitor
};

}  // namespace

std::shared_ptr<Monitor> monitor_from(nb::handle value, nb::handle keeper) {
  if (is_native(value)) return std::shared_ptr<Monitor>(std::shared_ptr<void>(), nb::cast<Monitor*>(value));
  for (const char* method : {"install", "tic", "toc_print"})
    if (!nb::hasattr(value, method))
      throw TypeError(join("a monitor must be a Monitor or have its methods install, tic and toc_print: ",
                           nb::repr(nb::handle(value.type())).c_str(), " has no ", method));
  return std::make_shared<PythonMonitor>(value, keeper);
}

nb::object monitor_to_python(Monitor& monitor) {
  if (const auto* python = dynamic_cast<PythonMonitor*>(&monitor)) return python->object();
  return nb::cast(&monitor, nb::rv_policy::reference);
}

void bind_monitor(nb::module_& m) {
  nb::class_<Monitor>(m, "Monitor", nb::dynamic_attr(), nb::is_weak_referenceable(), nb::type_slots(collector_slots),
                      "Looks into a network while it runs: every `interval` batches a statistic of each array whose "
                      "name matches `pattern`; stat_func takes an NDArray, and is the root of the mean square "
                      "otherwise.")
      .def(
          "__init__",
          [](nb::pointer_and_handle<Monitor> self, int64_t interval, nb::object stat_func, const std::string& pattern,
             bool sort, bool monitor_all) {
            new (self.p) Monitor(interval, {.stat_func = stat_func_from(stat_func, self.h),
                                            .pattern = pattern,
                                            .sort = sort,
                                            .monitor_all = monitor_all});
            self.h.attr("stat_func") = stat_func;
            self.h.attr("pattern") = pattern;
            self.h.attr("re_prog") = nb::module_::import_("re").attr("compile")(pattern);
            self.h.attr("sort") = sort;
            self.h.attr("monitor_all") = monitor_all;
            self.h.attr("queue") = nb::list();  // for subclasses with a toc() of their own
          },
          nb::arg("interval"), nb::arg("stat_func").none() = nb::none(), nb::arg("pattern") = ".*",
          nb::arg("sort") = false, nb::arg("monitor_all") = false)
      .def("install", &Monitor::install, nb::arg("exe"), "Listens to an executor.")
      .def("tic", &Monitor::tic, nb::call_guard<ReleaseGil>(), "Before a batch.")
      .def("toc", &toc, "After it: (step, name, text) of each array seen.")
      .def("toc_print", &toc_print, "The same, logged.")
      .def_prop_ro("exes", &Monitor::executors, "The executors it is installed in.")
      .def_prop_rw("interval", &Monitor::interval, &Monitor::set_interval)
      .def_prop_rw("step", &Monitor::step, &Monitor::set_step)
      .def_prop_rw("activated", &Monitor::activated, &Monitor::set_activated);
}

}  // namespace symbind::python
