// The product of two matrices in plain C++: blocks of both are packed into strips that a small kernel of vector
// registers runs over. Packing converts half precision to float and handles transposes, so there is one kernel per
// number type.
//
// The order of every sum depends on the sizes alone, not on the number of threads.
#pragma once

#include <cstdint>

#include "symbind/core/dtype.h"

namespace symbind::cpu_backend {

// A matrix in memory: `step` elements from one stored row to the next; transposed means that its transpose is used.
template <class T>
struct Matrix {
  T* data;
  int64_t step;
  bool transposed = false;
};

// c (rows × columns) = a (rows × inner) · b (inner × columns), added to what c holds where accumulate is set. c is not
// transposed and overlaps neither a nor b. Out is T, or float where T is a half-precision type.
template <class T, class Out>
void gemm(int64_t rows, int64_t columns, int64_t inner, Matrix<const T> a, Matrix<const T> b, Matrix<Out> c,
          bool accumulate = false);

}  // namespace symbind::cpu_backend
