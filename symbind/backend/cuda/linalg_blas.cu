#include "symbind/backend/cuda/linalg_blas.h"

#include <limits>

#include "symbind/backend/cuda/capture.h"
#include "symbind/backend/cuda/kernels.cuh"
#include "symbind/core/error.h"

namespace symbind::cuda_backend {
namespace {

// Larger triangular systems are solved faster one by one.
constexpr int64_t largest_batched = 256;

template <class T>
__global__ void write_addresses(T** addresses, T* base, int64_t step, int64_t count) {
  for (int64_t i = first_element(); i < count; i += element_step()) addresses[i] = base + i * step;
}

template <class T>
__global__ void copy_triangle(const T* from, T* to, int64_t extent, int64_t elements, bool lower) {
  for (int64_t i = first_element(); i < elements; i += element_step()) {
    const int64_t row = i / extent % extent, column = i % extent;
    to[i] = (lower ? column <= row : row <= column) ? from[i] : T(0);
  }
}

struct Handle {
  cublasHandle_t handle = nullptr;
  ~Handle() {
    if (handle) cublasDestroy_v2(handle);
  }
};

cublasOperation_t operation(bool transpose) { return transpose ? CUBLAS_OP_T : CUBLAS_OP_N; }

cublasStatus_t gemm(cublasHandle_t handle, cublasOperation_t first, cublasOperation_t second, int m, int n, int k,
                    float alpha, const float* b, int ldb, int64_t step_b, const float* a, int lda, int64_t step_a,
                    float beta, float* c, int ldc, int64_t step_c, int count) {
  return cublasSgemmStridedBatched(handle, first, second, m, n, k, &alpha, b, ldb, step_b, a, lda, step_a, &beta, c,
                                   ldc, step_c, count);
}
cublasStatus_t gemm(cublasHandle_t handle, cublasOperation_t first, cublasOperation_t second, int m, int n, int k,
                    double alpha, const double* b, int ldb, int64_t step_b, const double* a, int lda, int64_t step_a,
                    double beta, double* c, int ldc, int64_t step_c, int count) {
  return cublasDgemmStridedBatched(handle, first, second, m, n, k, &alpha, b, ldb, step_b, a, lda, step_a, &beta, c,
                                   ldc, step_c, count);
}

// The arguments of cuBLAS for a triangular system.
struct System {
  cublasSideMode_t side;
  cublasFillMode_t fill;
  cublasOperation_t operation;
  cublasDiagType_t diagonal;
  int m, n, lda;
};
cublasStatus_t solve(cublasHandle_t handle, const System& s, float alpha, const float* a, float* x) {
  return cublasStrsm_v2(handle, s.side, s.fill, s.operation, s.diagonal, s.m, s.n, &alpha, a, s.lda, x, s.m);
}
cublasStatus_t solve(cublasHandle_t handle, const System& s, double alpha, const double* a, double* x) {
  return cublasDtrsm_v2(handle, s.side, s.fill, s.operation, s.diagonal, s.m, s.n, &alpha, a, s.lda, x, s.m);
}
cublasStatus_t solve_batch(cublasHandle_t handle, const System& s, float alpha, const float* const* a, float* const* x,
                           int count) {
  return cublasStrsmBatched(handle, s.side, s.fill, s.operation, s.diagonal, s.m, s.n, &alpha, a, s.lda, x, s.m, count);
}
cublasStatus_t solve_batch(cublasHandle_t handle, const System& s, double alpha, const double* const* a,
                           double* const* x, int count) {
  return cublasDtrsmBatched(handle, s.side, s.fill, s.operation, s.diagonal, s.m, s.n, &alpha, a, s.lda, x, s.m, count);
}

}  // namespace

std::string refuse_linalg_product(const NodeView& node) {
  const DType dtype = node.outputs[0].dtype;
  if (dtype != DType::float32 && dtype != DType::float64) return "needs float32 or float64";
  if (node.outputs[0].shape.size() == 0) return "empty arrays";
  for (const auto& tensors : {node.inputs, node.outputs})
    for (const Tensor& tensor : tensors) {
      if (tensor.layout != Layout::plain) return "needs plain layouts";
      if (tensor.shape.size() > std::numeric_limits<int>::max()) return "more elements than cuBLAS can count";
    }
  return cublas.problem();
}

std::string refuse_linalg(const NodeView& node) {
  for (const auto& tensors : {node.inputs, node.outputs})
    for (const Tensor& tensor : tensors)
      if (tensor.shape.size() == 0) return "empty arrays";
  return refuse_linalg_product(node);
}

void check_blas_call(cublasStatus_t status, std::string_view where, std::string_view doing) {
  require(status == CUBLAS_STATUS_SUCCESS, where, " ", doing, ": cuBLAS says ", cublasGetStatusString(status));
}

cublasHandle_t blas_handle(CudaDevice& device, cudaStream_t stream) {
  const auto held = std::static_pointer_cast<Handle>(device.library("cublas", [] {
    const auto made = std::make_shared<Handle>();
    check_blas_call(cublasCreate_v2(&made->handle), "[linalg]", "starting cuBLAS");
    return std::static_pointer_cast<void>(made);
  }));
  check_blas_call(cublasSetStream_v2(held->handle, stream), "[linalg]", "choosing a stream");
  run_alone();  // all calls of a handle use one workspace
  return held->handle;
}

template <class T>
void queue_product(cublasHandle_t handle, const MatrixProduct& p, const T* a, const T* b, T* out,
                   std::string_view where) {
  const int rows = static_cast<int>(p.out.rows), columns = static_cast<int>(p.out.columns);
  const int inner = static_cast<int>(p.transpose_a ? p.a.rows : p.a.columns);
  // Matrices are evenly spaced along the axes before the rows, or along those after them.
  const bool evenly = p.out.between == 1;
  const int64_t calls = evenly ? 1 : p.out.outer, each = evenly ? p.out.outer : p.out.between;
  // cuBLAS requires a step of 1 of empty rows too.
  const auto row_step = [](const MatricesOf& matrices) {
    return static_cast<int>(std::max<int64_t>(1, matrices.row_step()));
  };
  const auto step = [&](const MatricesOf& matrices) { return evenly ? matrices.begin(1, 0) : matrices.begin(0, 1); };
  for (int64_t i = 0; i < calls; ++i)
    check_blas_call(
        gemm(handle, operation(p.transpose_b), operation(p.transpose_a), columns, rows, inner, static_cast<T>(p.alpha),
             b + p.b.begin(i, 0), row_step(p.b), step(p.b), a + p.a.begin(i, 0), row_step(p.a), step(p.a),
             static_cast<T>(p.beta), out + p.out.begin(i, 0), row_step(p.out), step(p.out), static_cast<int>(each)),
        where, "multiplying matrices");
}

template <class T>
void queue_addresses(cudaStream_t stream, T** addresses, T* base, int64_t step, int64_t count) {
  write_addresses<<<blocks_for(count), block_size, 0, stream>>>(addresses, base, step, count);
}

template <class T>
void queue_solve(cublasHandle_t handle, cudaStream_t stream, const LinalgTrsm& params, const MatricesOf& b, const T* a,
                 T* x, void* addresses, std::string_view where, bool unit_diagonal) {
  const int64_t extent = params.rightside ? b.columns : b.rows, size = b.rows * b.columns;
  const System system{.side = params.rightside ? CUBLAS_SIDE_LEFT : CUBLAS_SIDE_RIGHT,
                      .fill = params.lower ? CUBLAS_FILL_MODE_UPPER : CUBLAS_FILL_MODE_LOWER,
                      .operation = operation(params.transpose),
                      .diagonal = unit_diagonal ? CUBLAS_DIAG_UNIT : CUBLAS_DIAG_NON_UNIT,
                      .m = static_cast<int>(b.columns),
                      .n = static_cast<int>(b.rows),
                      .lda = static_cast<int>(extent)};
  const T alpha = static_cast<T>(params.alpha);
  if (b.outer == 1 || extent > largest_batched) {
    for (int64_t i = 0; i < b.outer; ++i)
      check_blas_call(solve(handle, system, alpha, a + i * extent * extent, x + i * size), where,
                      "solving a triangular system");
    return;
  }
  auto** const of_a = static_cast<const T**>(addresses);
  auto** const of_x = static_cast<T**>(addresses) + b.outer;
  queue_addresses<const T>(stream, of_a, a, extent * extent, b.outer);
  queue_addresses<T>(stream, of_x, x, size, b.outer);
  check_blas_call(solve_batch(handle, system, alpha, of_a, of_x, static_cast<int>(b.outer)), where,
                  "solving triangular systems");
}

template <class T>
void queue_triangle(cudaStream_t stream, const T* from, T* to, int64_t extent, int64_t count, bool lower) {
  const int64_t elements = count * extent * extent;
  if (elements > 0) copy_triangle<<<blocks_for(elements), block_size, 0, stream>>>(from, to, extent, elements, lower);
}

template void queue_product<float>(cublasHandle_t, const MatrixProduct&, const float*, const float*, float*,
                                   std::string_view);
template void queue_product<double>(cublasHandle_t, const MatrixProduct&, const double*, const double*, double*,
                                    std::string_view);
template void queue_addresses<float>(cudaStream_t, float**, float*, int64_t, int64_t);
template void queue_addresses<double>(cudaStream_t, double**, double*, int64_t, int64_t);
template void queue_solve<float>(cublasHandle_t, cudaStream_t, const LinalgTrsm&, const MatricesOf&, const float*,
                                 float*, void*, std::string_view, bool);
template void queue_solve<double>(cublasHandle_t, cudaStream_t, const LinalgTrsm&, const MatricesOf&, const double*,
                                  double*, void*, std::string_view, bool);
template void queue_triangle<float>(cudaStream_t, const float*, float*, int64_t, int64_t, bool);
template void queue_triangle<double>(cudaStream_t, const double*, double*, int64_t, int64_t, bool);

}  // namespace symbind::cuda_backend
