#include "symbind/core/error.h"

#include "bindings.h"

namespace symbind::python {

void bind_error(nb::module_& m) {
  nb::exception<Error>(m, "MXNetError", PyExc_RuntimeError).attr("__doc__") =
      "What went wrong inside an operator, a network or a file, with the names and shapes involved.";
}

}  // namespace symbind::python
