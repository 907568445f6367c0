// AttrScope and NameManager. In C++ their lifetime is the scope; in Python `with` decides, so Python objects are
// descriptions that create a C++ scope when entered.
#include "symbind/graph/attributes.h"

#include "bindings.h"
#include "convert.h"

namespace symbind::python {
namespace {

class ScopeGuard {
 public:
  explicit ScopeGuard(Attributes attributes) : scope_(std::make_unique<AttrScope>(std::move(attributes))) {}
  void close() { scope_.reset(); }

 private:
  std::unique_ptr<AttrScope> scope_;
};

// Gets names from a Python object: its get(name, hint).
class PythonNames final : public NameManager {
 public:
  explicit PythonNames(Held manager) : manager_(std::move(manager)) {}
  std::string get(const std::string& given, const std::string& hint) override {
    AcquireGil acquire;
    const nb::object name = given.empty() ? nb::none() : nb::cast(given);
    return nb::cast<std::string>(manager_.get().attr("get")(name, hint));
  }

 private:
  Held manager_;
};

class NamesGuard {
 public:
  explicit NamesGuard(Held manager) : names_(std::make_unique<PythonNames>(std::move(manager))) {}
  void close() { names_.reset(); }

 private:
  std::unique_ptr<PythonNames> names_;
};

}  // namespace

void bind_attributes(nb::module_& m) {
  nb::class_<ScopeGuard>(m, "_AttrScopeGuard")
      .def("__init__",
           [](ScopeGuard* self, nb::handle attributes) { new (self) ScopeGuard(attributes_of(attributes)); })
      .def("close", &ScopeGuard::close);
  nb::class_<NamesGuard>(m, "_NamesGuard", nb::type_slots(collector_slots))
      .def("__init__", [](nb::pointer_and_handle<NamesGuard> self,
                          nb::object manager) { new (self.p) NamesGuard(Held(std::move(manager), self.h)); })
      .def("close", &NamesGuard::close);
  m.def("_current_attributes", [] { return AttrScope::current(); });
  m.def("_current_name",
        [](const std::string& given, const std::string& hint) { return NameManager::current().get(given, hint); });
}

}  // namespace symbind::python
