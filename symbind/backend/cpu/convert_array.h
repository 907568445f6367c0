// Conversion of arrays to another element type (the rules are in backend/convert.h).
#pragma once

#include <cstdint>

#include "symbind/backend/convert.h"

namespace symbind::cpu_backend {

void convert_array(void* dst, DType to, const void* src, DType from, int64_t count);

}  // namespace symbind::cpu_backend
