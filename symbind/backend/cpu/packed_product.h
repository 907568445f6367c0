// Repeated products of a few rows with one matrix, for the steps of a recurrence: the matrix is packed once into strips
// of vectors; a product then reads them in order and runs on the calling thread. Every row of the result is computed
// independently, so it does not depend on which other rows are passed.
#pragma once

#include "symbind/backend/cpu/gemm.h"

namespace symbind::cpu_backend {

// Elements of a packed matrix of inner × columns.
template <class T>
int64_t packed_count(int64_t inner, int64_t columns);

template <class T>
void pack(int64_t inner, int64_t columns, Matrix<const T> matrix, T* packed);

// c (rows × columns) = a (rows × inner) · the packed matrix, added to what c holds where accumulate is set. a and c are
// not transposed and do not overlap. T is float or double.
template <class T>
void multiply_packed(int64_t rows, int64_t columns, int64_t inner, Matrix<const T> a, const T* packed, Matrix<T> c,
                     bool accumulate);

}  // namespace symbind::cpu_backend
