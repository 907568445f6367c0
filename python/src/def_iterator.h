// Shared by the bindings of iterator classes.
#pragma once

#include <array>
#include <utility>

#include "symbind/data/iterator.h"

#include "batch.h"

namespace symbind::python {

nb::object next_batch(DataIter& iter);      // throws StopIteration at the end of the epoch
nb::object next_by_parts(nb::handle iter);  // the same by iter_next(), getdata() and the others, as Python defines them
bool overrides_parts(nb::handle iter, nb::handle base);  // does its class define one of these beyond `base`?
nb::object current_batch(nb::handle iter);               // that of iter_next(); an error before its first call
// Objects of exactly this class are used from C++ without going through Python.
void register_native_iterator(nb::handle type);

// What an iterator has beside next(). `own`: its own iter_next(), getdata() and others, in terms of which next() is if
// a class in Python overrides one of them. `as_lists` and `as_arrays`: these in terms of next(); getdata() and
// getlabel() return lists of arrays, or the array itself, as MXNet's iterators over files do.
enum class BatchParts { own, as_lists, as_arrays };

// The common methods of C++ iterators.
template <class Iter>
void def_iterator(nb::class_<Iter, DataIter>& type, BatchParts parts) {
  register_native_iterator(type);
  type.def_prop_ro("provide_data", [](const Iter& self) { return list_of(self.provide_data()); })
      .def_prop_ro("provide_label", [](const Iter& self) { return list_of(self.provide_label()); })
      .def_prop_ro("batch_size", &Iter::batch_size)
      .def(
          "next",
          [parts](nb::handle self) {
            if (parts == BatchParts::own && overrides_parts(self, nb::type<Iter>())) return next_by_parts(self);
            return next_batch(nb::cast<Iter&>(self));
          },
          "The next batch; StopIteration at the end of the epoch.")
      .def("reset", &Iter::reset, nb::call_guard<ReleaseGil>(), "Back to the beginning.");
  if (parts == BatchParts::own) return;
  type.def("iter_next", [](nb::handle self) {
    try {
      self.attr("current_batch") = self.attr("next")();
      return true;
    } catch (nb::python_error& error) {
      if (!error.matches(PyExc_StopIteration)) throw;
      return false;
    }
  });
  using Names = std::array<std::pair<const char*, const char*>, 2>;
  for (const auto& [method, attribute] : Names{{{"getdata", "data"}, {"getlabel", "label"}}})
    type.def(method, [attribute, parts](nb::handle self) {
      nb::object arrays = current_batch(self).attr(attribute);
      return parts == BatchParts::as_arrays && nb::len(arrays) > 0 ? nb::object(arrays[0]) : arrays;
    });
  for (const auto& [method, attribute] : Names{{{"getpad", "pad"}, {"getindex", "index"}}})
    type.def(method, [attribute](nb::handle self) { return nb::object(current_batch(self).attr(attribute)); });
}

}  // namespace symbind::python
