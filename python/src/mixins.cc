// A Python class may have one of ours among several bases: class MyIter(Logged, mx.io.DataIter). nanobind accepts a
// single base of its own (nanobind 2 a single base at all) when it sets up such a class, although only the C++ one
// matters to it; so only that one is shown to it, in the arguments for nanobind 2 and in the class for nanobind 3.
// Several of ours are allowed if their C++ classes are the same or derived from each other, as in
// class MySGD(MyOptimizer, mx.optimizer.SGD): the most derived one is shown.
//
// Abstract classes, class Base(mx.metric.EvalMetric, abc.ABC), have a metaclass, ABCMeta, and Python requires one that
// is derived from both. nanobind compares its own metaclass by address, so it is made to count as derived from ABCMeta
// instead: ABCMeta is appended to the order of its bases, where it adds no behaviour. What ABCMeta does when a class is
// created (finding abstract methods, and preventing instances of classes with some) is done here.
#include <optional>
#include <typeinfo>
#include <utility>

#include "bindings.h"

namespace symbind::python {
namespace {

initproc set_up_class = nullptr;
PyTypeObject* abstract_kind = nullptr;  // abc.ABCMeta

bool is_ours(PyObject* base, PyObject* kind_of) { return Py_TYPE(base) == Py_TYPE(kind_of); }

// The C++ class that a class is, or is derived from in Python.
PyTypeObject* class_in_cpp(PyObject* type) {
  const std::type_info& kind = nb::type_info(type);
  PyObject* const order = reinterpret_cast<PyTypeObject*>(type)->tp_mro;
  PyObject* last = type;
  for (Py_ssize_t i = 0; i < PyTuple_Size(order); ++i)
    if (PyObject* each = PyTuple_GetItem(order, i); is_ours(each, type) && nb::type_info(each) == kind) last = each;
  return reinterpret_cast<PyTypeObject*>(last);
}

// The more derived of two classes of ours; null where neither is derived from the other.
PyObject* more_derived(PyObject* one, PyObject* other) {
  if (PyType_IsSubtype(class_in_cpp(one), class_in_cpp(other))) return one;
  return PyType_IsSubtype(class_in_cpp(other), class_in_cpp(one)) ? other : nullptr;
}

// The bases of a class that is set up with these arguments; null: one at most.
PyObject* several_bases(PyObject* args) {
  PyObject* const bases = PyTuple_Size(args) == 3 ? PyTuple_GetItem(args, 1) : nullptr;
  return bases && PyTuple_CheckExact(bases) && PyTuple_Size(bases) > 1 ? bases : nullptr;
}

// The most derived class of ours among the bases; null with an exception set if they are unrelated.
PyObject* our_base(PyObject* self, PyObject* bases) {
  PyObject* ours = nullptr;
  for (Py_ssize_t i = 0; i < PyTuple_Size(bases); ++i) {
    PyObject* const base = PyTuple_GetItem(bases, i);
    if (!is_ours(base, self)) continue;
    ours = ours ? more_derived(ours, base) : base;
    if (!ours) {
      PyErr_SetString(PyExc_TypeError,
                      "a class can have one of Symbind's classes among its bases, not two that are unrelated");
      return nullptr;
    }
  }
  return ours;
}

// While it lives, a class appears to have one base.
class OneBase {
 public:
  OneBase(PyTypeObject* type, PyObject* base, PyObject* bases)
      : type_(type),
        base_(std::exchange(type->tp_base, reinterpret_cast<PyTypeObject*>(base))),
        bases_(std::exchange(type->tp_bases, bases)) {}
  ~OneBase() {
    type_->tp_base = base_;
    type_->tp_bases = bases_;
  }
  OneBase(const OneBase&) = delete;
  OneBase& operator=(const OneBase&) = delete;

 private:
  PyTypeObject* type_;
  PyTypeObject* base_;
  PyObject* bases_;
};

int set_up_with_one_base(PyObject* self, PyObject* args, PyObject* kwargs) {
  PyObject* const bases = several_bases(args);
  if (!bases) return set_up_class(self, args, kwargs);
  PyObject* const ours = our_base(self, bases);
  if (!ours) return -1;
  const nb::tuple shown = nb::make_tuple(nb::handle(ours));
  const nb::object told = nb::steal(PyTuple_Pack(3, PyTuple_GetItem(args, 0), shown.ptr(), PyTuple_GetItem(args, 2)));
  if (!told.is_valid()) return -1;
  // Instances must have the layout of one of our classes: otherwise nanobind sees all bases, and refuses them.
  std::optional<OneBase> one_base;
  auto* const type = reinterpret_cast<PyTypeObject*>(self);
  if (is_ours(reinterpret_cast<PyObject*>(type->tp_base), self)) one_base.emplace(type, ours, shown.ptr());
  return set_up_class(self, told.ptr(), kwargs);
}

bool has_abstract_base(const PyTypeObject* type) {
  for (Py_ssize_t i = 0; i < PyTuple_Size(type->tp_mro); ++i)
    if (PyType_IsSubtype(Py_TYPE(PyTuple_GetItem(type->tp_mro, i)), abstract_kind) &&
        Py_TYPE(PyTuple_GetItem(type->tp_mro, i)) != Py_TYPE(type))
      return true;
  return false;
}

ternaryfunc call_class = nullptr;

PyObject* call_unless_abstract(PyObject* self, PyObject* args, PyObject* kwargs) {
  auto* type = reinterpret_cast<PyTypeObject*>(self);
  if (!(PyType_GetFlags(type) & Py_TPFLAGS_IS_ABSTRACT)) return call_class(self, args, kwargs);
  const nb::tuple none;
  return PyBaseObject_Type.tp_new(type, none.ptr(), nullptr);  // which raises, and names the methods
}

int find_abstract_methods(PyObject* self) {
  try {
    nb::handle(self).attr("__abstractmethods__") = nb::steal(PyFrozenSet_New(nullptr));
    nb::module_::import_("abc").attr("update_abstractmethods")(nb::handle(self));
  } catch (nb::python_error& error) {
    error.restore();
    return -1;
  }
  return 0;
}

int set_up_with_mixins(PyObject* self, PyObject* args, PyObject* kwargs) {
  if (set_up_with_one_base(self, args, kwargs) != 0) return -1;
  return has_abstract_base(reinterpret_cast<PyTypeObject*>(self)) ? find_abstract_methods(self) : 0;
}

void count_as_abstract_kind(PyTypeObject* kind) {
  abstract_kind =
      reinterpret_cast<PyTypeObject*>(nb::object(nb::module_::import_("abc").attr("ABCMeta")).release().ptr());
  if (PyType_IsSubtype(kind, abstract_kind)) return;
  const nb::object last = nb::make_tuple(nb::handle(reinterpret_cast<PyObject*>(abstract_kind)));
  PyObject* order = PySequence_Concat(kind->tp_mro, last.ptr());
  if (!order) throw nb::python_error();
  Py_DECREF(std::exchange(kind->tp_mro, order));
  PyType_Modified(kind);
}

}  // namespace

void allow_mixins(nb::module_& m) {
  PyTypeObject* kind = Py_TYPE(nb::object(m.attr("NDArray")).ptr());
  if (kind->tp_init == set_up_with_mixins) return;
  count_as_abstract_kind(kind);
  set_up_class = kind->tp_init;
  kind->tp_init = set_up_with_mixins;
  call_class = kind->tp_call;
  kind->tp_call = call_unless_abstract;
}

}  // namespace symbind::python
