// Errors of the bindings themselves. Like every error of the library these become Python types that derive from
// MXNetError and from the built-in type (error.cc). nanobind turns its own nb::type_error, nb::value_error and
// nb::index_error into the built-in types alone, so they are not thrown here.
#pragma once

#include "symbind/core/error_kinds.h"

namespace symbind::python {

// An argument of the right type with an invalid value.
class ValueError : public Error {
 public:
  using Error::Error;
};

// An argument of the wrong type, or one that is unknown, missing or given twice.
class TypeError : public Error {
 public:
  using Error::Error;
};

}  // namespace symbind::python
