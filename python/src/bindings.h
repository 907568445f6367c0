// One function per file of this folder: each adds the classes and functions of one header to the extension module.
#pragma once

#include "casters.h"

namespace symbind::python {

void bind_error(nb::module_& m);
void bind_context(nb::module_& m);
void bind_random(nb::module_& m);
void bind_ndarray(nb::module_& m);
void bind_attributes(nb::module_& m);
void bind_symbol(nb::module_& m);
void bind_op(nb::module_& m);
void bind_executor(nb::module_& m);
void bind_files(nb::module_& m);

}  // namespace symbind::python
