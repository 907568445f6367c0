// Type inference of operators that compute in floating-point types only.
#pragma once

#include "symbind/graph/op.h"

namespace symbind {

// All inputs and outputs have one type, a floating one.
void same_floating_type(Types& types);
void require_floating(const Types& types, std::string_view argument, DType dtype);

}  // namespace symbind
