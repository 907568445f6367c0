#include "convert.h"

#include <algorithm>
#include <array>
#include <cstring>

#include <nanobind/ndarray.h>

namespace symbind::python {
namespace {

constexpr std::array all_types = {DType::float32, DType::float64, DType::float16, DType::uint8,   DType::int32,
                                  DType::int8,    DType::int64,   DType::boolean, DType::bfloat16};

// NumPy's name of a type; bfloat16 is passed as its bits.
const char* numpy_name(DType dtype) {
  if (dtype == DType::boolean) return "bool_";
  if (dtype == DType::bfloat16) return "uint16";
  return name_of(dtype).data();
}

struct NumpyTypes {
  nb::object numpy = nb::module_::import_("numpy");
  nb::object dtype = numpy.attr("dtype");
  nb::object empty = numpy.attr("empty");
  nb::object ascontiguousarray = numpy.attr("ascontiguousarray");
  std::array<nb::object, 16> types;  // by DType
  std::array<nb::object, 16> dtypes;

  NumpyTypes() {
    for (DType type : all_types) {
      types[static_cast<size_t>(type)] = numpy.attr(numpy_name(type));
      dtypes[static_cast<size_t>(type)] = dtype(types[static_cast<size_t>(type)]);
    }
  }
};

// Never destroyed: the interpreter may be finalized before static objects are destroyed.
const NumpyTypes& numpy_types() {
  static const auto* types = new NumpyTypes;
  return *types;
}

thread_local std::vector<Context> context_stack;

// The memory of a contiguous NumPy array, while it lives.
class NumpyBytes {
 public:
  explicit NumpyBytes(nb::handle array, int flags = PyBUF_SIMPLE) {
    if (PyObject_GetBuffer(array.ptr(), &view_, flags) != 0) throw nb::python_error();
  }
  ~NumpyBytes() { PyBuffer_Release(&view_); }
  NumpyBytes(const NumpyBytes&) = delete;
  NumpyBytes& operator=(const NumpyBytes&) = delete;
  void* data() const { return view_.buf; }

 private:
  Py_buffer view_;
};

}  // namespace

// ---- small values --------------------------------------------------------------------------------------------------

std::vector<int64_t> dims_from(nb::handle value) {
  const auto number = [](nb::handle item) {
    const Py_ssize_t dim = PyNumber_AsSsize_t(item.ptr(), PyExc_OverflowError);
    if (dim == -1 && PyErr_Occurred()) throw nb::python_error();
    return static_cast<int64_t>(dim);
  };
  // A NumPy array with a single element would also pass as a number.
  if (PyIndex_Check(value.ptr()) && !PySequence_Check(value.ptr())) return {number(value)};
  std::vector<int64_t> dims;
  for (nb::handle item : value) dims.push_back(number(item));
  return dims;
}

nb::tuple tuple_of(const Shape& shape) { return tuple_of(std::vector<int64_t>(shape.begin(), shape.end())); }

nb::tuple tuple_of(const std::vector<int64_t>& dims) {
  nb::object result = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(dims.size())));
  for (size_t i = 0; i < dims.size(); ++i)
    PyTuple_SetItem(result.ptr(), static_cast<Py_ssize_t>(i), PyLong_FromLongLong(dims[i]));
  return nb::borrow<nb::tuple>(result);
}

DType dtype_from(nb::handle value) {
  const NumpyTypes& numpy = numpy_types();
  for (DType type : all_types)
    if (type != DType::bfloat16 && value.is(numpy.types[static_cast<size_t>(type)])) return type;
  if (PyLong_CheckExact(value.ptr())) {  // MXNet's code
    const auto code = nb::cast<int64_t>(value);
    for (DType type : all_types)
      if (code == static_cast<int64_t>(type)) return type;
    throw TypeError(join("no element type has the number ", code));
  }
  if (nb::isinstance<nb::str>(value)) {
    const auto name = nb::cast<std::string>(value);
    if (name == "bfloat16") return DType::bfloat16;
    if (name == "bool") return DType::boolean;
  }
  nb::object dtype;
  try {
    dtype = numpy.dtype(value);
  } catch (nb::python_error& error) {
    throw wrong_type(
        "expected an element type (float32, float64, float16, bfloat16, uint8, int8, int32, int64 or bool)", value);
  }
  for (DType type : all_types)
    if (type != DType::bfloat16 && dtype.equal(numpy.dtypes[static_cast<size_t>(type)])) return type;
  throw TypeError(join("arrays of ", nb::str(dtype).c_str(),
                       " do not exist here: float32, float64, float16, bfloat16, uint8, int8, int32, int64 and "
                       "bool do"));
}

nb::object numpy_type(DType dtype) {
  if (dtype == DType::none) return nb::none();
  if (dtype == DType::bfloat16) return nb::str("bfloat16");
  return numpy_types().types[static_cast<size_t>(dtype)];
}

nb::object numpy_module(const char* name) { return nb::module_::import_(name); }

TypeError wrong_type(std::string_view expected, nb::handle value) {
  return TypeError(join(expected, ", not ", nb::repr(value).c_str()));
}

nb::object optional_attribute(nb::handle object, const char* name) {
  PyObject* found = PyObject_GetAttrString(object.ptr(), name);
  if (found) return nb::steal(found);
  if (!PyErr_ExceptionMatches(PyExc_AttributeError)) throw nb::python_error();
  PyErr_Clear();
  return nb::none();
}

std::string class_name(nb::handle value) { return nb::str(nb::handle(value.type()).attr("__name__")).c_str(); }

std::optional<int64_t> integer_from(nb::handle value) {
  int64_t number = 0;
  if (nb::try_cast(value, number, false)) return number;
  if (!PyNumber_Check(value.ptr()) || PyComplex_Check(value.ptr())) return std::nullopt;
  const nb::object whole = nb::steal(PyNumber_Long(value.ptr()));
  if (!whole) PyErr_Clear();
  if (whole && whole.equal(value) && nb::try_cast(whole, number, false)) return number;
  return std::nullopt;
}

// ---- contexts ------------------------------------------------------------------------------------------------------

Context current_context() { return context_stack.empty() ? cpu() : context_stack.back(); }
void push_context(Context context) { context_stack.push_back(context); }
void replace_context(Context context) {
  if (context_stack.empty())
    context_stack.push_back(context);
  else
    context_stack.back() = context;
}
void pop_context() {
  if (!context_stack.empty()) context_stack.pop_back();
}

Context context_or_current(nb::handle value) {
  if (value.is_none()) return current_context();
  if (nb::isinstance<Context>(value)) return nb::cast<Context>(value);
  if (nb::isinstance<nb::str>(value)) return Context::from_string(nb::cast<std::string>(value));
  throw wrong_type("expected a context (mx.cpu(0), mx.gpu(0))", value);
}

std::vector<Context> contexts_from(nb::handle value) {
  if (value.is_none() || nb::isinstance<Context>(value) || nb::isinstance<nb::str>(value))
    return {context_or_current(value)};
  std::vector<Context> contexts;
  for (nb::handle item : value) contexts.push_back(context_or_current(item));
  return contexts;
}

// ---- texts ---------------------------------------------------------------------------------------------------------

std::string text_of(nb::handle value) {
  if (nb::isinstance<nb::str>(value)) return nb::cast<std::string>(value);
  if (value.is_none()) return "None";
  if (PyBool_Check(value.ptr())) return value.is(Py_True) ? "True" : "False";
  if (PyTuple_Check(value.ptr()) || PyList_Check(value.ptr())) {
    const bool tuple = PyTuple_Check(value.ptr());
    std::string text = tuple ? "(" : "[";
    size_t count = 0;
    for (nb::handle item : value) {
      if (count++) text += ", ";
      text += text_of(item);
    }
    if (tuple && count == 1) text += ",";
    return text + (tuple ? ")" : "]");
  }
  if (nb::isinstance<Context>(value)) return nb::cast<Context>(value).str();
  if (PyType_Check(value.ptr()) || nb::isinstance(value, numpy_types().dtype))  // numpy.float32, float
    return std::string(name_of(dtype_from(value)));
  if (PySequence_Check(value.ptr()) && nb::hasattr(value, "tolist"))  // kernel=np.array([3, 3])
    return text_of(nb::tuple(nb::object(value.attr("tolist")())));
  return nb::str(value).c_str();  // numbers, NumPy's among them
}

nb::dict dict_from(nb::handle value, const char* what) {
  if (value.is_none()) return {};
  if (nb::isinstance<nb::dict>(value)) return nb::borrow<nb::dict>(value);
  if (!nb::hasattr(value, "keys")) throw wrong_type(join(what, " must be a dict"), value);
  PyObject* made = PyObject_CallOneArg(reinterpret_cast<PyObject*>(&PyDict_Type), value.ptr());
  if (!made) throw nb::python_error();
  return nb::steal<nb::dict>(made);
}

Attributes attributes_of(nb::handle mapping) {
  Attributes attributes;
  for (auto [key, value] : dict_from(mapping, "attributes")) attributes[nb::cast<std::string>(key)] = text_of(value);
  return attributes;
}

std::vector<std::string> names_from(nb::handle value) {
  if (value.is_none()) return {};
  if (nb::isinstance<nb::str>(value)) return {nb::cast<std::string>(value)};
  std::vector<std::string> names;
  for (nb::handle item : value) {
    if (!nb::isinstance<nb::str>(item)) throw wrong_type("expected a name", item);
    names.push_back(nb::cast<std::string>(item));
  }
  return names;
}

// ---- arrays --------------------------------------------------------------------------------------------------------

nb::object array_or_none(const NDArray& array) { return array ? nb::cast(array) : nb::none(); }

nb::list list_of(const std::vector<NDArray>& arrays) {
  nb::list list;
  for (const NDArray& array : arrays) list.append(array_or_none(array));
  return list;
}

nb::list list_of(const std::vector<std::vector<NDArray>>& arrays) {
  nb::list list;
  for (const auto& inner : arrays) list.append(list_of(inner));
  return list;
}

nb::dict dict_of(const NamedArrays& arrays) {
  nb::dict dict;
  for (const auto& [name, array] : arrays) dict[name.c_str()] = array_or_none(array);
  return dict;
}

nb::dict dict_in_order(const std::vector<std::string>& names, const std::vector<NDArray>& arrays) {
  nb::dict dict;
  for (size_t i = 0; i < names.size(); ++i) {
    // As in MXNet: a dictionary would silently drop one of the two.
    if (dict.contains(names[i].c_str())) throw ValueError(join("two arrays are named '", names[i], "'"));
    dict[names[i].c_str()] = array_or_none(arrays[i]);
  }
  return dict;
}

nb::dict dict_in_order(const std::vector<std::string>& names, const NamedArrays& arrays) {
  nb::dict dict;
  for (const std::string& name : names)
    if (const auto found = arrays.find(name); found != arrays.end()) dict[name.c_str()] = found->second;
  for (const auto& [name, array] : arrays)
    if (!dict.contains(name.c_str())) dict[name.c_str()] = array;
  return dict;
}

NDArray array_from(nb::handle value, Context context) {
  if (nb::isinstance<NDArray>(value)) return nb::cast<NDArray>(value);
  const nb::object values = numpy_types().numpy.attr("asarray")(value, nb::arg("dtype") = "float32");
  NDArray array(Shape(dims_from(nb::object(values.attr("shape")))), context);
  copy_from_numpy(array, values);
  return array;
}

std::vector<NDArray> arrays_from(nb::handle value) {
  if (value.is_none()) return {};
  if (nb::isinstance<NDArray>(value)) return {nb::cast<NDArray>(value)};
  if (!nb::isinstance<nb::iterable>(value)) throw wrong_type("expected an NDArray or a list of them", value);
  std::vector<NDArray> arrays;
  for (nb::handle item : value) {
    if (!item.is_none() && !nb::isinstance<NDArray>(item))
      throw TypeError(join("expected an NDArray, not ", nb::repr(nb::handle(item.type())).c_str()));
    arrays.push_back(item.is_none() ? NDArray() : nb::cast<NDArray>(item));
  }
  return arrays;
}

NamedArrays named_arrays_from(nb::handle mapping) {
  NamedArrays arrays;
  for (auto [name, value] : dict_from(mapping, "arrays by name")) {
    if (!nb::isinstance<NDArray>(value))
      throw TypeError(join("expected an NDArray for ", nb::str(name).c_str(), ", not ",
                           nb::repr(nb::handle(value.type())).c_str()));
    arrays[nb::cast<std::string>(name)] = nb::cast<NDArray>(value);
  }
  return arrays;
}

Arrays bound_arrays_from(nb::handle value) {
  if (value.is_none()) return {};
  if (!nb::isinstance<nb::dict>(value)) return arrays_from(value);
  nb::dict given;  // None means no entry
  for (auto [name, array] : nb::borrow<nb::dict>(value))
    if (!array.is_none()) given[name] = array;
  return named_arrays_from(given);
}

GradReqs grad_reqs_from(nb::handle value) {
  if (nb::isinstance<nb::str>(value)) return nb::cast<std::string>(value);
  if (nb::isinstance<nb::dict>(value)) return nb::cast<std::map<std::string, std::string>>(value);
  return names_from(value);
}

void copy_from_numpy(const NDArray& array, nb::handle values) {
  const NumpyTypes& numpy = numpy_types();
  const DType dtype = array.dtype();
  // NumPy converts, except to bfloat16: that uses our own rounding.
  const DType through = dtype == DType::bfloat16 ? DType::float32 : dtype;
  const nb::object same =
      numpy.ascontiguousarray(values, nb::arg("dtype") = numpy.dtypes[static_cast<size_t>(through)]);
  const Shape shape(dims_from(nb::object(same.attr("shape"))));
  require(shape.size() == array.size(), "an array of shape ", array.shape(), " cannot take the values of one of shape ",
          shape);
  if (array.size() == 0) return;
  const NumpyBytes bytes(same);
  const void* data = bytes.data();
  visit_dtype(through, [&]<class T>(std::type_identity<T>) {
    array.copy_from(std::span(static_cast<const T*>(data), static_cast<size_t>(array.size())));
  });
}

nb::object to_numpy(const NDArray& array) {
  const NumpyTypes& numpy = numpy_types();
  if (array.dtype() == DType::bfloat16) return to_numpy(array.astype(DType::float32));
  nb::object result = numpy.empty(tuple_of(array.shape()), numpy.dtypes[static_cast<size_t>(array.dtype())]);
  if (array.size() == 0) return result;
  const NumpyBytes bytes(result, PyBUF_WRITABLE);
  {
    ReleaseGil release;
    array.storage().device().copy_to_host(bytes.data(), array.data(), array.bytes());
  }
  return result;
}

nb::dlpack::dtype dlpack_type(DType dtype) {
  using Code = nb::dlpack::dtype_code;
  const Code code = dtype == DType::bfloat16  ? Code::Bfloat
                    : dtype == DType::boolean ? Code::Bool
                    : dtype == DType::uint8   ? Code::UInt
                    : is_floating(dtype)      ? Code::Float
                                              : Code::Int;
  return {static_cast<uint8_t>(code), static_cast<uint8_t>(8 * size_of(dtype)), 1};
}

nb::object numpy_view(const NDArray& array) {
  require(array.storage().device().is_host(), "NumPy cannot see the memory of an array on ", array.context());
  std::vector<size_t> dims(array.shape().begin(), array.shape().end());
  const nb::dlpack::dtype bits{static_cast<uint8_t>(nb::dlpack::dtype_code::UInt), 16, 1};
  return nb::cast(nb::ndarray<nb::numpy>(array.mutable_data(), dims.size(), dims.data(), nb::cast(array), nullptr,
                                         array.dtype() == DType::bfloat16 ? bits : dlpack_type(array.dtype())));
}

NDArray over_numpy(nb::object values, const std::vector<int64_t>& shape) {
  const NumpyBytes bytes(values);
  const DType dtype = dtype_from(values.attr("dtype"));
  return NDArray::from_blob(bytes.data(), Shape(shape), dtype, std::make_shared<Held>(std::move(values)));
}

}  // namespace symbind::python
