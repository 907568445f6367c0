// Dot products between a few vectors and the rows of a matrix: a product of matrices that is limited by reading the
// larger one, which is read once, without packing. A matrix in half precision is converted in registers.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "symbind/backend/cpu/row_kernels.h"
#include "symbind/passes/target.h"

namespace symbind::cpu_backend {

// Is a product over `inner` of `few` vectors with a matrix faster this way than as a matrix product, which would first
// pack the matrix, or convert all of it to float32?
bool suits_row_dots(int64_t few, int64_t inner, DType dtype);

// T is float, or a half type where has_row_kernels(). The result does not depend on the threads.
template <class T>
void row_dots(const RowDots& size, const float* vectors, const T* matrix, const float* bias, float* y);

// A kernel whose arrays are of one type. Half-precision vectors, bias and results are converted to float32 in scratch.
struct RowDotsInputs {
  size_t vectors, matrix;
  std::optional<size_t> bias = std::nullopt;
};
std::unique_ptr<Kernel> build_row_dots(const RowDots& size, const RowDotsInputs& at, DType dtype,
                                       const std::string& act_type = "");

}  // namespace symbind::cpu_backend
