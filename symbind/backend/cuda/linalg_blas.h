// Products of row-major matrices and solutions of triangular systems by cuBLAS, for many matrices with one call. cuBLAS
// is column-major: a row-major matrix is its transpose there, so the operands of a product and the sides of a system
// are swapped, and a lower triangle is an upper one. All functions only queue work, and can be captured.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "symbind/backend/cuda/cublas.h"
#include "symbind/backend/cuda/device.h"
#include "symbind/backend/linalg_product.h"
#include "symbind/passes/target.h"

namespace symbind::cuda_backend {

// The reason why cuBLAS cannot run a node, or nothing: types other than float32 and float64, layouts, empty arrays and
// extents beyond 32 bits.
std::string refuse_linalg(const NodeView& node);
// The same for products, whose operands may be empty: a sum of no terms is 0.
std::string refuse_linalg_product(const NodeView& node);

void check_blas_call(cublasStatus_t status, std::string_view where, std::string_view doing);

// The device's handle with its stream set; used while the device's queue is locked, as it is when a step runs.
cublasHandle_t blas_handle(CudaDevice& device, cudaStream_t stream);

// c is `out` itself.
template <class T>
void queue_product(cublasHandle_t handle, const MatrixProduct& product, const T* a, const T* b, T* out,
                   std::string_view where);

// Device memory for the addresses of the matrices of two arrays.
inline size_t address_bytes(int64_t count) { return 2 * static_cast<size_t>(count) * sizeof(void*); }
// addresses[i] = base + i · step
template <class T>
void queue_addresses(cudaStream_t stream, T** addresses, T* base, int64_t step, int64_t count);

// b, which has the shape of x, becomes x with op(a) · x = alpha · b, or x · op(a) = alpha · b. `addresses` has
// address_bytes(b.outer). With unit_diagonal the diagonal of a is not read but is 1.
template <class T>
void queue_solve(cublasHandle_t handle, cudaStream_t stream, const LinalgTrsm& params, const MatricesOf& b, const T* a,
                 T* x, void* addresses, std::string_view where, bool unit_diagonal = false);

// One triangle of `count` square matrices; zeros elsewhere. `to` may be `from`.
template <class T>
void queue_triangle(cudaStream_t stream, const T* from, T* to, int64_t extent, int64_t count, bool lower);

}  // namespace symbind::cuda_backend
