// Elements of matrices: their diagonals and triangles extracted, or placed in new matrices. Arrays hold matrices in
// their last two axes, one for each element of the axes before.
#pragma once

#include "symbind/graph/builder.h"

namespace SYMBIND_API symbind {

// The sum of the logarithms of the diagonal.
struct LinalgSumlogdiag {};
inline constexpr Builder<LinalgSumlogdiag> linalg_sumlogdiag;

struct LinalgExtractdiag {
  int64_t offset = 0;  // above (positive) or below the main diagonal
};
inline constexpr Builder<LinalgExtractdiag> linalg_extractdiag;

struct LinalgMakediag {
  int64_t offset = 0;
};
inline constexpr Builder<LinalgMakediag> linalg_makediag;

// The triangle that starts at the diagonal `offset`: the lower one row by row, the upper one column by column. `lower`
// decides for the main diagonal; else the offset's sign does.
struct LinalgExtracttrian {
  int64_t offset = 0;
  bool lower = true;
};
inline constexpr Builder<LinalgExtracttrian> linalg_extracttrian;

struct LinalgMaketrian {
  int64_t offset = 0;
  bool lower = true;
};
inline constexpr Builder<LinalgMaketrian> linalg_maketrian;

// Building blocks of gradients. (out_grad, A) → A_grad
struct SumlogdiagGrad {};
inline constexpr Builder<SumlogdiagGrad> sumlogdiag_grad;

// One triangle of each matrix, the diagonal included, times `factor`; the other one is zero, or mirrors it.
struct Triangle {
  bool lower = true;
  bool mirrored = false;
  double factor = 1;
};
inline constexpr Builder<Triangle> triangle;

// A + Aᵀ
struct PlusTranspose {};
inline constexpr Builder<PlusTranspose> plus_transpose;

// (matrices, factors) → the transpose of each matrix times its factor
struct ScaledTranspose {};
inline constexpr Builder<ScaledTranspose> scaled_transpose;

// Of the eigenvectors U and eigenvalues L of a symmetric matrix, (dU · Uᵀ, L, dL) → Y where Uᵀ · Y · U is the gradient
// of the matrix; without `values` dL is left out and the diagonal zero.
struct EigenGrad {
  bool values = true;
};
inline constexpr Builder<EigenGrad> eigen_grad;

}  // namespace symbind
