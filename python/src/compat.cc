// For symbind._compat: adding methods to classes written in C, which Python code cannot do, and NumPy's older rule for
// indices.
#include <utility>

#include "bindings.h"

namespace symbind::python {
namespace {

void add_method(nb::handle type, const char* name, nb::handle method) {
  if (!PyType_Check(type.ptr())) throw TypeError("methods are added to classes");
  auto* c_type = reinterpret_cast<PyTypeObject*>(type.ptr());
  if (PyDict_SetItemString(c_type->tp_dict, name, method.ptr()) != 0) throw nb::python_error();
  PyType_Modified(c_type);  // invalidates Python's cache of the class
}

// NumPy took a list that holds slices, None or ... for a tuple until 1.23; now it is an IndexError.
binaryfunc read_index = nullptr;
objobjargproc write_index = nullptr;
PyObject* on_use = nullptr;  // called where the older rule applies

// The list as a tuple, where the older rule applies; else an empty object.
nb::object as_older_index(PyObject* key) {
  if (!PyList_CheckExact(key) || !PyErr_ExceptionMatches(PyExc_IndexError)) return {};
  for (nb::handle item : nb::borrow<nb::list>(key))
    if (PySlice_Check(item.ptr()) || item.is_none() || item.ptr() == Py_Ellipsis) {
      PyErr_Clear();
      nb::object called = nb::steal(PyObject_CallNoArgs(on_use));
      if (!called.is_valid()) PyErr_Clear();  // a failing log call is ignored
      return nb::steal(PyList_AsTuple(key));
    }
  return {};
}

PyObject* read(PyObject* self, PyObject* key) {
  if (PyObject* result = read_index(self, key)) return result;
  const nb::object tuple = as_older_index(key);
  return tuple.is_valid() ? read_index(self, tuple.ptr()) : nullptr;
}

int write(PyObject* self, PyObject* key, PyObject* value) {
  const int result = write_index(self, key, value);
  if (result == 0) return 0;
  const nb::object tuple = as_older_index(key);
  return tuple.is_valid() ? write_index(self, tuple.ptr(), value) : result;
}

void allow_lists_of_slices(nb::handle type, nb::object told) {
  auto* slots = reinterpret_cast<PyTypeObject*>(type.ptr())->tp_as_mapping;
  if (read_index != nullptr || slots == nullptr) return;
  on_use = told.release().ptr();
  read_index = std::exchange(slots->mp_subscript, &read);
  write_index = std::exchange(slots->mp_ass_subscript, &write);
}

}  // namespace

void bind_compat(nb::module_& m) {
  m.def("_add_method", &add_method);
  m.def("_allow_lists_of_slices", &allow_lists_of_slices);
}

}  // namespace symbind::python
