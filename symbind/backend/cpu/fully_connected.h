// FullyConnected on a few rows, which reads the weight where it is.
#pragma once

#include "symbind/backend/cpu/row_dots.h"
#include "symbind/ops/fully_connected.h"

namespace symbind::cpu_backend {

// Are there so few rows that dot products along the rows of the weight are faster than a matrix product, which would
// first copy the weight into another order? For float32, and a weight of (hidden, inner).
inline bool has_few_rows(const FullyConnectedSize& size, DType dtype) {
  return dtype == DType::float32 && suits_row_dots(size.rows, size.inner);
}

}  // namespace symbind::cpu_backend
