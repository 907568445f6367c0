// Translation of the library's errors to Python exceptions. MXNet's Python code raises ValueError, TypeError,
// IndexError or AssertionError, its operators MXNetError; programs catch either. So every error here is an MXNetError,
// and one that MXNet raises from Python also has that built-in type.
#include <stdexcept>
#include <string_view>

#include "symbind/graph/op.h"

#include "bindings.h"

namespace symbind::python {
namespace {

// The exception classes live as long as the process.
PyObject* plain_error = nullptr;
PyObject* value_error = nullptr;
PyObject* type_error = nullptr;
PyObject* index_error = nullptr;
PyObject* file_error = nullptr;

// "[Convolution conv1] …" comes from an operator, "[bind] …" and a text without brackets do not.
bool comes_from_operator(std::string_view text) {
  if (!text.starts_with('[')) return false;
  const size_t end = text.find_first_of(" ]");
  return end != text.npos && OpRegistry::get().find_or_null(std::string(text.substr(1, end - 1))) != nullptr;
}

PyObject* class_of(const Error& error) {
  if (dynamic_cast<const FileNotFoundError*>(&error)) return file_error;
  if (dynamic_cast<const IndexError*>(&error)) return index_error;
  if (dynamic_cast<const UnknownArgumentError*>(&error) || dynamic_cast<const TypeError*>(&error)) return type_error;
  if (dynamic_cast<const ValueError*>(&error)) return value_error;
  const std::string_view text = error.what();
  return comes_from_operator(text) && !text.starts_with("[reshape]") ? plain_error  // that is NDArray's method
                                                                     : value_error;
}

void translate(const std::exception_ptr& thrown, void*) {
  try {
    std::rethrow_exception(thrown);
  } catch (const Error& error) {
    PyErr_SetString(class_of(error), error.what());
  } catch (const std::out_of_range& error) {
    PyErr_SetString(index_error, error.what());
  } catch (const std::logic_error& error) {  // nanobind would make some of these plain ValueErrors
    PyErr_SetString(value_error, error.what());
  } catch (const std::bad_cast&) {
    PyErr_SetString(type_error, "an argument, or a value inside one, is of the wrong type");
  }
}

PyObject* make_class(nb::module_& m, const char* name, nb::tuple bases, const char* doc) {
  nb::dict members;
  members["__doc__"] = doc;
  members["__module__"] = nb::object(m.attr("__name__"));
  nb::object type = nb::handle(reinterpret_cast<PyObject*>(&PyType_Type))(name, bases, members);
  m.attr(name) = type;
  return type.release().ptr();
}

}  // namespace

void bind_error(nb::module_& m) {
  plain_error =
      make_class(m, "MXNetError", nb::make_tuple(nb::handle(PyExc_RuntimeError)),
                 "What went wrong inside an operator, a network or a file, with the names and shapes involved.");
  const nb::handle base(plain_error), assertion(PyExc_AssertionError);
  value_error = make_class(m, "MXNetValueError", nb::make_tuple(base, nb::handle(PyExc_ValueError), assertion),
                           "An argument that does not fit, or a call at the wrong time.");
  type_error = make_class(m, "MXNetTypeError", nb::make_tuple(base, nb::handle(PyExc_TypeError), assertion),
                          "An argument of the wrong type, or one that is unknown.");
  index_error =
      make_class(m, "MXNetIndexError", nb::make_tuple(base, nb::handle(PyExc_IndexError), nb::handle(PyExc_ValueError)),
                 "An index out of range.");
  file_error = make_class(m, "MXNetFileNotFoundError", nb::make_tuple(base, nb::handle(PyExc_FileNotFoundError)),
                          "A file that does not exist.");
  nb::register_exception_translator(&translate);
}

}  // namespace symbind::python
