// For symbind._compat: adding methods to classes written in C, which Python code cannot do, and NumPy's older rules for
// indices and for numbers from arrays.
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

void say_that_it_is_used(PyObject* told) {
  const nb::object called = nb::steal(PyObject_CallNoArgs(told));
  if (!called.is_valid()) PyErr_Clear();  // a failing log call is ignored
}

// The list as a tuple, where the older rule applies; else an empty object.
nb::object as_older_index(PyObject* key) {
  if (!PyList_CheckExact(key) || !PyErr_ExceptionMatches(PyExc_IndexError)) return {};
  for (nb::handle item : nb::borrow<nb::list>(key))
    if (PySlice_Check(item.ptr()) || item.is_none() || item.ptr() == Py_Ellipsis) {
      PyErr_Clear();
      say_that_it_is_used(on_use);
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

// float(a) and int(a) of an array with one element took that element until 2.4; now the array may have no axes.
unaryfunc float_of = nullptr;
unaryfunc int_of = nullptr;
PyObject* on_number = nullptr;

PyObject* number_from(PyObject* self, unaryfunc convert) {
  if (PyObject* result = convert(self)) return result;
  if (!PyErr_ExceptionMatches(PyExc_TypeError)) return nullptr;
  nb::python_error error;  // takes it from the interpreter
  const nb::object size = nb::steal(PyObject_GetAttrString(self, "size"));
  const nb::object axes = nb::steal(PyObject_GetAttrString(self, "ndim"));
  if (size.is_valid() && axes.is_valid() && PyLong_AsLong(size.ptr()) == 1 && PyLong_AsLong(axes.ptr()) > 0) {
    say_that_it_is_used(on_number);
    const nb::object without_axes = nb::steal(PyObject_CallMethod(self, "reshape", "(())"));
    return without_axes.is_valid() ? convert(without_axes.ptr()) : nullptr;
  }
  PyErr_Clear();
  error.restore();
  return nullptr;
}

PyObject* as_float(PyObject* self) { return number_from(self, float_of); }
PyObject* as_int(PyObject* self) { return number_from(self, int_of); }

void allow_numbers_of_arrays(nb::handle type, nb::object told) {
  auto* slots = reinterpret_cast<PyTypeObject*>(type.ptr())->tp_as_number;
  if (float_of != nullptr || slots == nullptr) return;
  on_number = told.release().ptr();
  float_of = std::exchange(slots->nb_float, &as_float);
  int_of = std::exchange(slots->nb_int, &as_int);
}

}  // namespace

void bind_compat(nb::module_& m) {
  m.def("_add_method", &add_method);
  m.def("_allow_lists_of_slices", &allow_lists_of_slices);
  m.def("_allow_numbers_of_arrays", &allow_numbers_of_arrays);
}

}  // namespace symbind::python
