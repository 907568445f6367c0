#pragma once

#include "casters.h"

namespace symbind::python {

void bind_control_flow(nb::module_& m);

}  // namespace symbind::python
