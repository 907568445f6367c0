// Factorizations of matrices, and functions based on them. Arrays hold matrices in their last two axes, one for each
// element of the axes before. A matrix that cannot be factorized (not positive definite, singular) is an error on a CPU
// and NaN on a GPU, where nothing waits for a result.
#pragma once

#include "symbind/graph/builder.h"

namespace SYMBIND_API symbind {

// Lower triangular L with L · Lᵀ = A, for symmetric positive definite A of which the lower triangle is read.
struct LinalgPotrf {};
inline constexpr Builder<LinalgPotrf> linalg_potrf;

// (A · Aᵀ)⁻¹ of a lower triangular A.
struct LinalgPotri {};
inline constexpr Builder<LinalgPotri> linalg_potri;

// Q with orthonormal rows and lower triangular L: A = L · Q. A has at least as many columns as rows.
struct LinalgGelqf {};
inline constexpr Builder<LinalgGelqf> linalg_gelqf;

// U with orthonormal rows and L: A = Uᵀ · diag(L) · U, for symmetric A of which the lower triangle is read. L ascends;
// the largest element of each row of U is positive.
struct LinalgSyevd {};
inline constexpr Builder<LinalgSyevd> linalg_syevd;

struct LinalgInverse {};
inline constexpr Builder<LinalgInverse> linalg_inverse;

struct LinalgDet {};
inline constexpr Builder<LinalgDet> linalg_det;

// The sign of the determinant and the logarithm of its absolute value; 0 and -∞ of a singular matrix.
struct LinalgSlogdet {};
inline constexpr Builder<LinalgSlogdet> linalg_slogdet;

// The inverse for the gradients of determinants: zeros where a matrix is singular.
struct InverseOrZeros {};
inline constexpr Builder<InverseOrZeros> inverse_or_zeros;

}  // namespace symbind
