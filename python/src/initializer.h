// Conversion of initializers between Python and C++.
#pragma once

#include "symbind/train/initializer.h"

#include "casters.h"

namespace symbind::python {

// None is none; an Initializer; a name, or the text of dumps(); or any function of (desc, array).
// `keeper` will store it.
InitializerPtr initializer_from(nb::handle value, nb::handle keeper = {});

// A name with attributes: symbind.initializer.InitDesc, a str.
nb::object to_python(const InitDesc& desc);
InitDesc init_desc_from(nb::handle value);  // a plain text has no attributes

}  // namespace symbind::python
