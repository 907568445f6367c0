// Type inference of operators that compute in floating-point types.
#pragma once

#include "symbind/graph/op.h"

namespace symbind {

// All inputs and outputs have one type, a floating one.
void same_floating_type(Types& types);
void require_floating(const Types& types, std::string_view argument, DType dtype);

bool is_half(DType dtype);  // float16 or bfloat16
// The type of what needs more digits than data in half precision: statistics, parameters of norms, lengths.
DType at_least_float32(DType data);

}  // namespace symbind
