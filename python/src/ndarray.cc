// NDArray: a handle to data, with the arithmetic of exec/arithmetic.h. Indexing beyond a first-axis int or slice is
// left to NumPy (symbind/ndarray/_indexing.py), which sees the memory through numpy_view.
#include "symbind/core/ndarray.h"

#include <cmath>

#include <nanobind/ndarray.h>
#include <nanobind/operators.h>

#include "symbind/exec/arithmetic.h"
#include "symbind/exec/invoke.h"

#include "bindings.h"
#include "convert.h"

namespace symbind::python {

struct NumpyArray {};  // one with axes: an array of no axes is a number

}  // namespace symbind::python

namespace nanobind::detail {

template <>
struct type_caster<symbind::python::NumpyArray> {
  NB_TYPE_CASTER(symbind::python::NumpyArray, const_name("numpy.ndarray"))

  bool from_python(handle source, uint8_t, cleanup_list*) noexcept {
    if (std::string_view(Py_TYPE(source.ptr())->tp_name) != "numpy.ndarray") return false;
    const bool has_axes = PyObject_Length(source.ptr()) >= 0;
    PyErr_Clear();
    return has_axes;
  }
};

}  // namespace nanobind::detail

namespace symbind::python {
namespace {

void require_one_element(const NDArray& array, const char* what) {
  if (array.size() == 1) return;
  const std::string text = join(what, " is defined for arrays of one element, not of shape ", array.shape());
  if (std::string_view(what).ends_with("()")) throw TypeError(text);
  throw ValueError(text);
}

nb::object scalar_of(const NDArray& array) { return to_numpy(array).attr("item")(); }

NDArray by_name(const char* op, const NDArray& a, const NDArray& b) {
  return invoke(std::string(op), std::vector<NDArray>{a, b})[0];
}
NDArray by_name(const char* op, const NDArray& a, double b) {
  return invoke(std::string(op), std::vector<NDArray>{a}, {{"scalar", print(b)}})[0];
}

// A refusing overload of every operator. Otherwise NumPy would handle it, with an error that names neither side, or
// with False for an elementwise ==.
void def_refusal(nb::class_<NDArray>& type, const char* name) {
  type.def(
      name,
      [](const NDArray&, NumpyArray) -> nb::object {
        throw TypeError(
            "an NDArray and a NumPy array do not mix: turn one into the other, with mx.nd.array(values) or asnumpy()");
      },
      nb::is_operator());
}

// The forms NDArray op NDArray, NDArray op number, number op NDArray of one operator.
template <class Both, class Reversed>
void def_arithmetic(nb::class_<NDArray>& type, const char* name, const char* reversed, Both both, Reversed back) {
  type.def(
      name, [both](const NDArray& a, const NDArray& b) { return both(a, b); }, nb::is_operator());
  type.def(
      name, [both](const NDArray& a, double b) { return both(a, b); }, nb::is_operator());
  type.def(
      reversed, [back](const NDArray& a, double b) { return back(b, a); }, nb::is_operator());
  def_refusal(type, name);
  def_refusal(type, reversed);
}

template <class Function>
void def_comparison(nb::class_<NDArray>& type, const char* name, Function compare) {
  type.def(
      name, [compare](const NDArray& a, const NDArray& b) { return compare(a, b); }, nb::is_operator());
  type.def(
      name, [compare](const NDArray& a, double b) { return compare(a, b); }, nb::is_operator());
  def_refusal(type, name);
}

template <class Function>
void def_in_place(nb::class_<NDArray>& type, const char* name, Function change) {
  type.def(
      name,
      [change](nb::handle self, const NDArray& b) {
        change(nb::cast<NDArray&>(self), b);
        return nb::borrow(self);
      },
      nb::is_operator());
  type.def(
      name,
      [change](nb::handle self, double b) {
        change(nb::cast<NDArray&>(self), b);
        return nb::borrow(self);
      },
      nb::is_operator());
  def_refusal(type, name);
}

void bind_arithmetic(nb::class_<NDArray>& type) {
  def_arithmetic(
      type, "__add__", "__radd__", [](const NDArray& a, const auto& b) { return a + b; },
      [](double a, const NDArray& b) { return a + b; });
  def_arithmetic(
      type, "__sub__", "__rsub__", [](const NDArray& a, const auto& b) { return a - b; },
      [](double a, const NDArray& b) { return a - b; });
  def_arithmetic(
      type, "__mul__", "__rmul__", [](const NDArray& a, const auto& b) { return a * b; },
      [](double a, const NDArray& b) { return a * b; });
  def_arithmetic(
      type, "__truediv__", "__rtruediv__", [](const NDArray& a, const auto& b) { return a / b; },
      [](double a, const NDArray& b) { return a / b; });
  def_arithmetic(
      type, "__pow__", "__rpow__", [](const NDArray& a, const auto& b) { return pow(a, b); },
      [](double a, const NDArray& b) { return pow(a, b); });
  type.def(
      "__mod__", [](const NDArray& a, const NDArray& b) { return by_name("broadcast_mod", a, b); }, nb::is_operator());
  type.def(
      "__mod__", [](const NDArray& a, double b) { return by_name("_mod_scalar", a, b); }, nb::is_operator());
  type.def(
      "__rmod__", [](const NDArray& a, double b) { return by_name("_rmod_scalar", a, b); }, nb::is_operator());
  def_refusal(type, "__mod__");
  def_refusal(type, "__rmod__");
  type.def("__neg__", [](const NDArray& a) { return -a; });
  def_comparison(type, "__eq__", [](const NDArray& a, const auto& b) { return a == b; });
  def_comparison(type, "__ne__", [](const NDArray& a, const auto& b) { return a != b; });
  def_comparison(type, "__lt__", [](const NDArray& a, const auto& b) { return a < b; });
  def_comparison(type, "__le__", [](const NDArray& a, const auto& b) { return a <= b; });
  def_comparison(type, "__gt__", [](const NDArray& a, const auto& b) { return a > b; });
  def_comparison(type, "__ge__", [](const NDArray& a, const auto& b) { return a >= b; });
  def_in_place(type, "__iadd__", [](NDArray& a, const auto& b) { a += b; });
  def_in_place(type, "__isub__", [](NDArray& a, const auto& b) { a -= b; });
  def_in_place(type, "__imul__", [](NDArray& a, const auto& b) { a *= b; });
  def_in_place(type, "__itruediv__", [](NDArray& a, const auto& b) { a /= b; });
}

void bind_views(nb::class_<NDArray>& type) {
  type.def("_at", [](const NDArray& self, int64_t index) { return self.at(index); })
      .def("_become", [](NDArray& self, const NDArray& other) { self = other; })
      .def("_slice", &NDArray::slice, nb::arg("start"), nb::arg("stop"))
      .def("_reshape", [](const NDArray& self, nb::handle shape) { return self.reshape(dims_from(shape)); })
      .def("_reshape_reversed",
           [](const NDArray& self, nb::handle shape) {
             const Shape resolved = resolve_reshape(self.shape(), dims_from(shape), true, "[reshape]");
             return self.reshape(std::vector<int64_t>(resolved.begin(), resolved.end()));
           })
      .def("_numpy_view", &numpy_view, "NumPy's view of the memory, for immediate use.")
      .def("_same_memory", &NDArray::same_memory)
      .def_static("_over_numpy",
                  [](nb::object values, nb::handle shape) { return over_numpy(std::move(values), dims_from(shape)); })
      .def("__dlpack__",
           [](const NDArray& self, nb::kwargs) {
             self.storage().mark_exported();
             self.wait_to_read();
             std::vector<size_t> dims(self.shape().begin(), self.shape().end());
             return nb::cast(nb::ndarray<>(self.mutable_data(), dims.size(), dims.data(), nb::cast(self), nullptr,
                                           dlpack_type(self.dtype()),
                                           self.context().is_gpu() ? nb::device::cuda::value : nb::device::cpu::value,
                                           self.context().is_gpu() ? gpu_number(self.context()) : 0));
           })
      .def("__dlpack_device__", [](const NDArray& self) {
        return self.context().is_gpu() ? nb::make_tuple(2, gpu_number(self.context())) : nb::make_tuple(1, 0);
      });
}

}  // namespace

void bind_ndarray(nb::module_& m) {
  nb::class_<NDArray> type(m, "NDArray", nb::is_weak_referenceable(),
                           "An array: shape, type and context. Copying the handle shares the data.");
  type.def(
          "__init__",
          // None: as in unpickling an MXNet array, which __setstate__ then fills.
          [](NDArray* self, const NDArray* handle, bool) {
            new (self) NDArray(handle ? *handle : NDArray(Shape{1}, cpu()));
          },
          nb::arg("handle").none(), nb::arg("writable") = true,
          "Another handle to the data of an array, such as callbacks get.")
      .def_prop_ro(
          "shape", [](const NDArray& self) { return tuple_of(self.shape()); }, "The extents, as a tuple.")
      .def_prop_ro("size", &NDArray::size, "The number of elements.")
      .def_prop_ro("ndim", &NDArray::rank, "The number of axes.")
      .def_prop_ro("dtype", &NDArray::dtype, "The element type, as a NumPy type.")
      .def_prop_ro("context", &NDArray::context, "The device that holds the elements.")
      .def_prop_ro("ctx", &NDArray::context, "The device that holds the elements.")
      .def("asnumpy", &to_numpy, "The elements, copied into a NumPy array.")
      .def(
          "asscalar",
          [](const NDArray& self) {
            require_one_element(self, "asscalar");
            return nb::object(to_numpy(self).attr("reshape")(-1)[0]);  // NumPy's number, in the array's type
          },
          "The only element.")
      .def(
          "item",
          [](const NDArray& self) {
            require_one_element(self, "item");
            return scalar_of(self);
          },
          "The only element, as a Python number.")
      .def(
          "astype",
          [](nb::handle self, DType dtype, bool copy) {
            const auto& array = nb::cast<const NDArray&>(self);
            if (!copy && array.dtype() == dtype) return nb::borrow(self);
            return nb::cast(array.astype(dtype));
          },
          nb::arg("dtype"), nb::arg("copy") = true,
          "A copy converted to another element type; with copy=False the array itself if it has the type already.")
      .def("copy", &NDArray::copy, "A copy on the same device.")
      .def(
          "copyto",
          [](const NDArray& self, nb::handle other) {
            if (nb::isinstance<Context>(other)) return self.as_copy_in(nb::cast<Context>(other));
            if (!nb::isinstance<NDArray>(other)) throw TypeError("copyto takes an NDArray or a context");
            const auto dst = nb::cast<NDArray>(other);
            self.copyto(dst);
            return dst;
          },
          nb::arg("other"), "Copies the elements into another array, or into a new one on a context.")
      .def("as_in_context", &NDArray::as_in_context, nb::arg("context"),
           "The array itself if it is on the context, else a copy there.")
      .def("as_in_ctx", &NDArray::as_in_context, nb::arg("ctx"),
           "The array itself if it is on the context, else a copy there.")
      .def("wait_to_read", &NDArray::wait_to_read, nb::call_guard<ReleaseGil>(),
           "Waits until all queued work on the array's device is done.")
      .def("wait_to_write", &NDArray::wait_to_read, nb::call_guard<ReleaseGil>(),
           "Waits until all queued work on the array's device is done.")
      .def("_fill", &NDArray::fill)
      .def("_copy_from_numpy", &copy_from_numpy)
      .def("__len__",
           [](const NDArray& self) {
             if (self.rank() == 0) throw TypeError("an array without axes has no length");
             return self.shape()[0];
           })
      .def("__bool__",
           [](const NDArray& self) {
             if (self.size() == 0) return false;
             if (self.size() > 1)
               throw ValueError("The truth value of an NDArray with multiple elements is ambiguous.");
             return self.item() != 0;
           })
      .def("__float__",
           [](const NDArray& self) {
             require_one_element(self, "float()");
             return self.item();
           })
      .def("__int__",
           [](const NDArray& self) {
             require_one_element(self, "int()");
             return nb::int_(scalar_of(self));
           })
      .def("__index__",
           [](const NDArray& self) {
             if (self.size() != 1 || is_floating(self.dtype()))
               throw TypeError("only arrays of one integer can be used as an index");
             return nb::int_(scalar_of(self));
           })
      .def("__hash__", [](nb::handle self) { return reinterpret_cast<intptr_t>(self.ptr()) >> 4; });
  bind_arithmetic(type);
  bind_views(type);
  type.attr("__array_priority__") = 1000.0;

  m.def(
      "_empty",
      [](const Shape& shape, nb::handle ctx, DType dtype) { return empty(shape, context_or_current(ctx), dtype); },
      nb::arg("shape"), nb::arg("ctx").none(), nb::arg("dtype"));
  m.def(
      "_full",
      [](const Shape& shape, double value, nb::handle ctx, DType dtype) {
        return full(shape, value, context_or_current(ctx), dtype);
      },
      nb::arg("shape"), nb::arg("val"), nb::arg("ctx").none(), nb::arg("dtype"));
  m.def(
      "_concatenate",
      [](nb::handle arrays, int axis) {
        const std::vector<NDArray> given = arrays_from(arrays);
        return concatenate(given, axis);
      },
      nb::arg("arrays"), nb::arg("axis") = 0);
}

}  // namespace symbind::python
