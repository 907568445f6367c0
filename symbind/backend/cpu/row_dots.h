// Dot products between a few vectors and the rows of a matrix: a product of matrices that is limited by reading the
// larger one, which is read once and where it is.
#pragma once

#include <cstdint>

namespace symbind::cpu_backend {

inline constexpr int64_t most_row_dots = 4;  // vectors at a time

// Is a product over `inner` of `few` vectors with a matrix faster so than as a product of matrices, which would first
// copy the matrix into another order?
inline bool suits_row_dots(int64_t few, int64_t inner) { return few >= 1 && few <= most_row_dots && inner >= 16; }

// inner is at least 16.
// y[vector · vector_step + row · row_step] = Σ vectors[vector · inner + k] · matrix[row · inner + k] (+ bias[row])
struct RowDots {
  int64_t vectors, rows, inner;
  int64_t vector_step, row_step;
};
void row_dots(const RowDots& size, const float* vectors, const float* matrix, const float* bias, float* y);

}  // namespace symbind::cpu_backend
