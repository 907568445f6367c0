#include "symbind/ops/floating.h"

#include "symbind/core/error.h"

namespace symbind {

void require_floating(const Types& types, std::string_view argument, DType dtype) {
  require(dtype == DType::none || is_floating(dtype), types.where(), " ", argument,
          " must be of a floating type: ", dtype);
}

void same_floating_type(Types& types) {
  same_type(types);
  require_floating(types, types.inputs() ? "data" : "output", types.outputs() ? types.output().get() : DType::none);
}

bool is_half(DType dtype) { return dtype == DType::float16 || dtype == DType::bfloat16; }

DType at_least_float32(DType data) { return is_half(data) ? DType::float32 : data; }

}  // namespace symbind
