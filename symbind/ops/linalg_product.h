// Products of matrices and solutions of triangular systems. Arrays hold matrices in their last two axes, one for each
// element of the axes before.
#pragma once

#include "symbind/graph/builder.h"

namespace SYMBIND_API symbind {

// alpha · op(A) · op(B) + beta · C. `axis` is the axis of the rows of all matrices; the columns are the last axis.
struct LinalgGemm {
  bool transpose_a = false;
  bool transpose_b = false;
  double alpha = 1;
  double beta = 1;
  int64_t axis = -2;
};
inline constexpr Builder<LinalgGemm> linalg_gemm;

// alpha · op(A) · op(B)
struct LinalgGemm2 {
  bool transpose_a = false;
  bool transpose_b = false;
  double alpha = 1;
  int64_t axis = -2;
};
inline constexpr Builder<LinalgGemm2> linalg_gemm2;

// alpha · A · Aᵀ, or alpha · Aᵀ · A
struct LinalgSyrk {
  bool transpose = false;
  double alpha = 1;
};
inline constexpr Builder<LinalgSyrk> linalg_syrk;

// alpha · op(A) · B, or alpha · B · op(A), of a triangular A, whose other triangle is not read.
struct LinalgTrmm {
  bool transpose = false;
  bool rightside = false;
  bool lower = true;
  double alpha = 1;
};
inline constexpr Builder<LinalgTrmm> linalg_trmm;

// X where op(A) · X = alpha · B, or X · op(A) = alpha · B, of a triangular A.
struct LinalgTrsm {
  bool transpose = false;
  bool rightside = false;
  bool lower = true;
  double alpha = 1;
};
inline constexpr Builder<LinalgTrsm> linalg_trsm;

// The position of the matrices in an array: matrix (i, j) of `outer` × `between` starts at element
// (i · rows · between + j) · columns, and its rows are between · columns elements apart.
struct MatricesOf {
  int64_t outer = 1, rows = 0, between = 1, columns = 0;

  int64_t row_step() const { return between * columns; }
  int64_t begin(int64_t i, int64_t j) const { return (i * rows * between + j) * columns; }
};
// With the rows along an axis that counts from the end if negative.
MatricesOf matrices_of(const Shape& shape, int64_t row_axis = -2);

}  // namespace symbind
