// Matrix products that are dot products along the rows of both operands.
#pragma once

#include <optional>

#include "symbind/backend/cpu/row_dots.h"
#include "symbind/ops/dot.h"

namespace symbind::cpu_backend {

struct DotsOf {
  RowDots size;
  bool vectors_are_a;  // else the few vectors are the second operand
};

// The product as dot products between few vectors and rows; none if it is not of this form.
std::optional<DotsOf> as_row_dots(const MatrixProduct& product, DType dtype);

}  // namespace symbind::cpu_backend
