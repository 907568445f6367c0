// Factorizations of row-major matrices by LAPACK, from a private copy of OpenBLAS that is opened at the first call.
// Each call runs on the calling thread. If the library is missing, the error says how to install it.
//
// LAPACK reads matrices by columns: a row-major matrix is its transpose there, and a lower triangle an upper one.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <vector>

#include "symbind/backend/cpu/gemm.h"
#include "symbind/core/parts.h"
#include "symbind/ops/linalg_product.h"

namespace symbind::cpu_backend::lapack {

Part part();  // opens the library

// LAPACK uses 32-bit sizes: fails for a larger matrix.
void check_extents(std::initializer_list<int64_t> extents, std::string_view where);

// B = X with op(A) · X = alpha · B (or X · op(A)). B has `rows` rows and as many columns as its step.
template <class T>
void solve_triangular(const LinalgTrsm& params, Matrix<const T> a, Matrix<T> b, int64_t rows);

// Square matrices of `extent` rows and columns, in place. The results of those that return a number are 0, or the
// number (from 1) of the diagonal element at which they failed.
template <class T>
class Square {
 public:
  explicit Square(int64_t extent);

  // The lower triangle becomes the factor; the upper one is unchanged.
  int64_t cholesky(T* a);
  // Of a lower triangular factor: the lower triangle becomes that of the inverse of its square.
  int64_t inverse_of_cholesky(T* a);
  // The factors L · U of the matrix with its rows exchanged, in one matrix; pivots() says how.
  int64_t lu(T* a);
  const std::vector<int>& pivots() const { return pivots_; }  // row i was exchanged with row pivots()[i], from 1
  // After lu(): the inverse.
  int64_t inverse_of_lu(T* a);
  // Of the lower triangle of a symmetric matrix: its rows become eigenvectors, `values` the eigenvalues in ascending
  // order. False where the iteration does not converge.
  bool eigen(T* a, T* values);

 private:
  T* work(int64_t count);

  int extent_;
  std::vector<int> pivots_;
  std::vector<T> work_;
};

// A row-major (rows, columns) matrix with rows ≤ columns becomes Q; l, (rows, rows), becomes lower triangular.
template <class T>
void factor_lq(T* a, T* l, int64_t rows, int64_t columns);

}  // namespace symbind::cpu_backend::lapack
