#include "symbind/core/error.h"

#include "bindings.h"

namespace symbind::python {

void bind_error(nb::module_& m) {
  nb::exception<Error>(m, "MXNetError", PyExc_RuntimeError).attr("__doc__") =
      "What went wrong inside an operator, a network or a file, with the names and shapes involved.";
  // A value of the wrong kind inside an argument.
  nb::register_exception_translator([](const std::exception_ptr& thrown, void*) {
    try {
      std::rethrow_exception(thrown);
    } catch (const std::bad_cast&) {
      PyErr_SetString(PyExc_TypeError, "an argument, or a value inside one, is of the wrong type");
    }
  });
}

}  // namespace symbind::python
