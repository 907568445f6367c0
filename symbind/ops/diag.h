// Diagonals: extracted from an array, or placed in a new one.
#pragma once

#include "symbind/graph/builder.h"

namespace SYMBIND_API symbind {

struct Diag {
  int64_t k = 0;  // above (positive) or below the main diagonal
  int64_t axis1 = 0;
  int64_t axis2 = 1;
};
inline constexpr Builder<Diag> diag;

// (out_grad, data for its shape) → data_grad
struct DiagGrad : Diag {};
inline constexpr Builder<DiagGrad> diag_grad;

// The elements on the diagonals of an array with two axes or more: element (i, j, …) of them, the index along a
// diagonal last, is element start + i·steps[0] + j·steps[1] + … of the array.
struct Diagonals {
  std::vector<int64_t> extents, steps;
  int64_t start = 0;
};
Diagonals diagonals_of(const Diag& params, const Shape& whole, std::string_view who);

}  // namespace symbind
