// Type casters for the small value types of core: a Shape is a tuple (an int or any sequence of ints is accepted), a
// DType is NumPy's type (its names and codes are accepted), an empty NDArray is None inside lists.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/function.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include "symbind/core/ndarray.h"

#include "errors.h"
#include "gil.h"

namespace nb = nanobind;

namespace symbind::python {

// A flag with Python's truth value of any object, e.g. 1 or numpy.bool_. (nanobind's bool accepts only True and False.)
struct Truth {
  bool value = false;
  operator bool() const { return value; }
};
inline std::optional<bool> flag(const std::optional<Truth>& truth) {
  return truth ? std::optional<bool>(truth->value) : std::nullopt;
}

std::vector<int64_t> dims_from(nb::handle value);  // an int, or a sequence of ints; else TypeError
nb::tuple tuple_of(const Shape& shape);
nb::tuple tuple_of(const std::vector<int64_t>& dims);
DType dtype_from(nb::handle value);  // NumPy types and dtypes, names, Python's float, int and bool
nb::object numpy_type(DType dtype);  // numpy.float32; for bfloat16, which NumPy lacks, its name
nb::object numpy_module(const char* name = "numpy");

}  // namespace symbind::python

namespace nanobind::detail {

// Not defined, so that object.attr("name") and object[key] cannot be passed on unevaluated: nanobind would look them up
// inside noexcept functions, where a missing name ends the process. Write nb::object(object.attr("name")).
template <class Impl>
struct type_caster<accessor<Impl>>;

template <>
struct type_caster<symbind::python::Truth> {
  NB_TYPE_CASTER(symbind::python::Truth, const_name("bool"))

  bool from_python(handle source, uint8_t, cleanup_list*) noexcept {
    const int truth = PyObject_IsTrue(source.ptr());
    if (truth < 0) PyErr_Clear();
    value = {truth > 0};
    return truth >= 0;
  }
  static handle from_cpp(const symbind::python::Truth& truth, rv_policy, cleanup_list*) noexcept {
    return handle(truth ? Py_True : Py_False).inc_ref();
  }
};

template <>
struct type_caster<symbind::Shape> {
  NB_TYPE_CASTER(symbind::Shape, const_name("tuple[int, ...]"))

  bool from_python(handle source, uint8_t, cleanup_list*) {
    if (!PyLong_Check(source.ptr()) && !PyTuple_Check(source.ptr()) && !PyList_Check(source.ptr()) &&
        !PyIndex_Check(source.ptr()) && !(PySequence_Check(source.ptr()) && !PyUnicode_Check(source.ptr())))
      return false;
    value = symbind::Shape(symbind::python::dims_from(source));
    return true;
  }
  static handle from_cpp(const symbind::Shape& shape, rv_policy, cleanup_list*) {
    return symbind::python::tuple_of(shape).release();
  }
};

template <>
struct type_caster<symbind::DType> {
  NB_TYPE_CASTER(symbind::DType, const_name("type | str"))

  bool from_python(handle source, uint8_t, cleanup_list*) {
    value = symbind::python::dtype_from(source);
    return true;
  }
  static handle from_cpp(symbind::DType dtype, rv_policy, cleanup_list*) {
    return symbind::python::numpy_type(dtype).release();
  }
};

template <>
struct type_caster<symbind::NamedArrays> : dict_caster<symbind::NamedArrays, std::string, symbind::NDArray> {};

}  // namespace nanobind::detail
