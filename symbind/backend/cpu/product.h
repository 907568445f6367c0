// The fastest available product of two matrices, for kernels that are composed of several: oneDNN's if it is built in
// and the numbers are float32, else ours.
#pragma once

#include <type_traits>

#include "symbind/backend/cpu/gemm.h"

namespace symbind::cpu_backend {

// As gemm(), by the library. False: not available, or it failed, and c is unchanged. Defined by backend/onednn and the
// stubs in no_onednn.
bool library_product(int64_t rows, int64_t columns, int64_t inner, Matrix<const float> a, Matrix<const float> b,
                     Matrix<float> c, bool accumulate);

template <class T>
void product(int64_t rows, int64_t columns, int64_t inner, Matrix<const T> a, Matrix<const T> b, Matrix<T> c,
             bool accumulate = false) {
  if constexpr (std::is_same_v<T, float>)
    if (rows > 0 && columns > 0 && inner > 0 && library_product(rows, columns, inner, a, b, c, accumulate)) return;
  gemm<T, T>(rows, columns, inner, a, b, c, accumulate);
}

}  // namespace symbind::cpu_backend
