// A Python class may have one of ours among several bases: class MyIter(Logged, mx.io.DataIter). nanobind takes a
// single base when it sets up such a class, although only the one of C++ matters to it; so that one is what it is told.
#include "bindings.h"

namespace symbind::python {
namespace {

initproc set_up_class = nullptr;

int set_up_with_mixins(PyObject* self, PyObject* args, PyObject* kwargs) {
  PyObject* bases = PyTuple_Size(args) == 3 ? PyTuple_GetItem(args, 1) : nullptr;
  if (!bases || !PyTuple_CheckExact(bases) || PyTuple_Size(bases) < 2) return set_up_class(self, args, kwargs);
  PyObject* ours = nullptr;
  for (Py_ssize_t i = 0; i < PyTuple_Size(bases); ++i) {
    PyObject* base = PyTuple_GetItem(bases, i);
    if (Py_TYPE(base) != Py_TYPE(self)) continue;
    if (ours) {
      PyErr_SetString(PyExc_TypeError, "a class can have one of Symbind's classes among its bases, not two");
      return -1;
    }
    ours = base;
  }
  const nb::object told = nb::steal(
      PyTuple_Pack(3, PyTuple_GetItem(args, 0), nb::make_tuple(nb::handle(ours)).ptr(), PyTuple_GetItem(args, 2)));
  return told.is_valid() ? set_up_class(self, told.ptr(), kwargs) : -1;
}

}  // namespace

void allow_mixins(nb::module_& m) {
  PyTypeObject* kind = Py_TYPE(nb::object(m.attr("NDArray")).ptr());
  if (kind->tp_init == set_up_with_mixins) return;
  set_up_class = kind->tp_init;
  kind->tp_init = set_up_with_mixins;
}

}  // namespace symbind::python
