// cuBLASLt is column-major. A row-major matrix read by columns is its transpose, and (a·b)ᵀ = bᵀ·aᵀ: so b is passed
// first, a second, and the result is row-major. The bias, which cuBLASLt adds along the rows of its result, is added
// along our columns, as FullyConnected requires.
#include "symbind/backend/cuda/matmul.h"

#include <algorithm>
#include <string_view>

#include "symbind/backend/cuda/cublas_lt.h"
#include "symbind/core/error.h"

namespace symbind::cuda_backend {
namespace {

constexpr size_t most_workspace = size_t{32} << 20;
constexpr size_t workspace_alignment = 256;  // required by cuBLASLt

void check_blas(cublasStatus_t status, std::string_view where, std::string_view doing) {
  require(status == CUBLAS_STATUS_SUCCESS, where, " ", doing, ": cuBLASLt says ", cublasLtGetStatusString(status), " (",
          cublasLtGetStatusName(status), ")");
}

cudaDataType_t cuda_type(DType dtype) {
  switch (dtype) {
    case DType::float32:
      return CUDA_R_32F;
    case DType::float64:
      return CUDA_R_64F;
    case DType::float16:
      return CUDA_R_16F;
    case DType::bfloat16:
      return CUDA_R_16BF;
    default:
      fail_unknown_dtype(dtype);
  }
}

cublasComputeType_t compute_type_of(DType dtype) {
  if (dtype == DType::float64) return CUBLAS_COMPUTE_64F;
  if (dtype == DType::float32 && tf32_wanted()) return CUBLAS_COMPUTE_32F_FAST_TF32;
  return CUBLAS_COMPUTE_32F;
}

// Descriptors are freed with their owner.
struct Free {
  void operator()(cublasLtMatmulDescOpaque_t* descriptor) const { cublasLtMatmulDescDestroy(descriptor); }
  void operator()(cublasLtMatrixLayoutOpaque_t* layout) const { cublasLtMatrixLayoutDestroy(layout); }
  void operator()(cublasLtMatmulPreferenceOpaque_t* preference) const { cublasLtMatmulPreferenceDestroy(preference); }
};
using Descriptor = std::unique_ptr<cublasLtMatmulDescOpaque_t, Free>;
using MatrixLayout = std::unique_ptr<cublasLtMatrixLayoutOpaque_t, Free>;
using Preference = std::unique_ptr<cublasLtMatmulPreferenceOpaque_t, Free>;

// Row-major matrices of a batch in an array.
struct Matrices {
  int64_t rows, columns;
  MatrixSteps steps;

  Matrices(int64_t row_count, int64_t column_count, const MatrixSteps& given)
      : rows(row_count),
        columns(column_count),
        steps{given.row ? given.row : columns, given.matrix ? given.matrix : rows * columns} {}
};

Matrices matrices_a(const MatmulProblem& p) {
  return p.transpose_a ? Matrices(p.inner, p.rows, p.a_steps) : Matrices(p.rows, p.inner, p.a_steps);
}
Matrices matrices_b(const MatmulProblem& p) {
  return p.transpose_b ? Matrices(p.columns, p.inner, p.b_steps) : Matrices(p.inner, p.columns, p.b_steps);
}
Matrices matrices_out(const MatmulProblem& p) { return {p.rows, p.columns, p.out_steps}; }

// Row-major matrices, read by columns.
MatrixLayout layout_of(cudaDataType_t type, const Matrices& m, int64_t batch, std::string_view where) {
  cublasLtMatrixLayout_t layout = nullptr;
  check_blas(cublasLtMatrixLayoutCreate(&layout, type, static_cast<uint64_t>(m.columns), static_cast<uint64_t>(m.rows),
                                        m.steps.row),
             where, "describing a matrix");
  MatrixLayout result(layout);
  if (batch == 1) return result;
  const auto set = [&](cublasLtMatrixLayoutAttribute_t attribute, auto value) {
    check_blas(cublasLtMatrixLayoutSetAttribute(layout, attribute, &value, sizeof value), where,
               "describing a batch of matrices");
  };
  set(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, static_cast<int32_t>(batch));
  set(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, m.steps.matrix);
  return result;
}

// The alignment of the addresses of all matrices, if the arrays are aligned to `alignment`.
size_t alignment_in_batch(const MatmulProblem& p, size_t alignment) {
  if (p.batch == 1) return alignment;
  for (const Matrices& m : {matrices_a(p), matrices_b(p), matrices_out(p)}) {
    const size_t bytes = static_cast<size_t>(m.steps.matrix) * size_of(p.dtype);
    alignment = std::min(alignment, bytes & -bytes);
  }
  return alignment;
}

}  // namespace

struct Matmul::Plan {
  size_t alignment = 0;
  Descriptor operation;
  MatrixLayout first, second, result;
  cublasLtMatmulAlgo_t algorithm{};
  size_t workspace = 0;

  template <class T>
  void set(cublasLtMatmulDescAttributes_t attribute, T value, std::string_view where) const {
    check_blas(cublasLtMatmulDescSetAttribute(operation.get(), attribute, &value, sizeof value), where,
               "describing a matrix product");
  }
};

Matmul::~Matmul() = default;

std::string refuse_product(const NodeView& node) {
  if (!is_floating(node.outputs[0].dtype)) return "needs floating types";
  for (const auto& input : node.inputs) {
    if (input.dtype != node.outputs[0].dtype) return "arrays of different types";
    if (input.layout != Layout::plain) return "needs plain layouts";
  }
  return "";
}

Matmul::Matmul(CudaDevice& device, const MatmulProblem& problem, std::string where)
    : device_(device), problem_(problem), where_(std::move(where)) {
  if (problem.batch == 0 || problem.rows == 0 || problem.columns == 0 || problem.inner == 0) return;
  const CurrentDevice current(device.id());
  aligned_ = plan_for(problem.alignment, true, most_workspace);
  const bool fused = aligned_ != nullptr;
  if (!aligned_) aligned_ = plan_for(problem.alignment, false, most_workspace);
  require(aligned_ != nullptr, where_, " cuBLASLt has no algorithm for a product of ", problem.rows, "×", problem.inner,
          " by ", problem.inner, "×", problem.columns, " in ", problem.dtype);
  adds_bias_ = fused && problem.bias;
  applies_relu_ = fused && problem.relu;
  if (aligned_->workspace > 0) scratch_bytes_ = aligned_->workspace + workspace_alignment;
}

// Null when cuBLASLt has no algorithm. Throws only on internal errors.
std::unique_ptr<Matmul::Plan> Matmul::plan_for(size_t alignment, bool with_epilogue, size_t workspace) const {
  const auto& p = problem_;
  auto plan = std::make_unique<Plan>();
  plan->alignment = alignment;
  const cudaDataType_t type = cuda_type(p.dtype);
  const cudaDataType_t scale_type = p.dtype == DType::float64 ? CUDA_R_64F : CUDA_R_32F;
  cublasLtMatmulDesc_t operation = nullptr;
  check_blas(cublasLtMatmulDescCreate(&operation, compute_type_of(p.dtype), scale_type), where_,
             "describing a matrix product");
  plan->operation.reset(operation);
  plan->set(CUBLASLT_MATMUL_DESC_TRANSA, p.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N, where_);
  plan->set(CUBLASLT_MATMUL_DESC_TRANSB, p.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N, where_);
  if (with_epilogue && (p.bias || p.relu)) {
    plan->set(CUBLASLT_MATMUL_DESC_EPILOGUE,
              p.bias ? (p.relu ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_BIAS) : CUBLASLT_EPILOGUE_RELU,
              where_);
    // The search needs an address, but uses only its alignment; the real one is set at each run.
    if (p.bias)
      plan->set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, reinterpret_cast<const void*>(uintptr_t{1} << 20 | alignment),
                where_);
  }
  plan->first = layout_of(type, matrices_b(p), p.batch, where_);
  plan->second = layout_of(type, matrices_a(p), p.batch, where_);
  plan->result = layout_of(type, matrices_out(p), p.batch, where_);

  cublasLtMatmulPreference_t made = nullptr;
  check_blas(cublasLtMatmulPreferenceCreate(&made), where_, "choosing an algorithm");
  const Preference preference(made);
  const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t attribute, auto value) {
    check_blas(cublasLtMatmulPreferenceSetAttribute(preference.get(), attribute, &value, sizeof value), where_,
               "choosing an algorithm");
  };
  prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, uint64_t{workspace});
  const size_t of_matrices = alignment_in_batch(p, alignment);
  for (const auto attribute : {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
                               CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
    prefer(attribute, static_cast<uint32_t>(of_matrices));

  cublasLtMatmulHeuristicResult_t best{};
  int found = 0;
  const cublasStatus_t status =
      cublasLtMatmulAlgoGetHeuristic(device_.blas(), plan->operation.get(), plan->first.get(), plan->second.get(),
                                     plan->result.get(), plan->result.get(), preference.get(), 1, &best, &found);
  if (status != CUBLAS_STATUS_SUCCESS || found == 0 || best.state != CUBLAS_STATUS_SUCCESS) return nullptr;
  plan->algorithm = best.algo;
  plan->workspace = best.workspaceSize;
  return plan;
}

void Matmul::run(cudaStream_t stream, const void* a, const void* b, const void* bias, void* out, void* scratch) {
  const int64_t results = problem_.batch * problem_.rows * problem_.columns;
  if (results == 0) return;
  if (problem_.inner == 0) {  // empty sums
    if (!problem_.accumulate) queue_fill(stream, out, problem_.dtype, results, 0);
    return;
  }

  const bool with_bias = adds_bias_;
  uintptr_t bits = reinterpret_cast<uintptr_t>(a) | reinterpret_cast<uintptr_t>(b) | reinterpret_cast<uintptr_t>(out);
  if (with_bias) bits |= reinterpret_cast<uintptr_t>(bias);
  const std::lock_guard lock(mutex_);
  Plan* plan = aligned_.get();
  if (bits % plan->alignment != 0) {
    if (!unaligned_) unaligned_ = plan_for(size_of(problem_.dtype), adds_bias_ || applies_relu_, aligned_->workspace);
    require(unaligned_ != nullptr, where_, " cuBLASLt has no algorithm for arrays at addresses that are multiples of ",
            size_of(problem_.dtype), " bytes only");
    plan = unaligned_.get();
  }
  if (with_bias) plan->set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias, where_);

  const auto scratch_begin = reinterpret_cast<uintptr_t>(scratch) + workspace_alignment - 1;
  void* const workspace = plan->workspace > 0
                              ? reinterpret_cast<void*>(scratch_begin / workspace_alignment * workspace_alignment)
                              : nullptr;
  const double scale_double = problem_.scale, of_old_double = problem_.accumulate ? 1 : 0;
  const float scale_float = static_cast<float>(problem_.scale), of_old_float = problem_.accumulate ? 1 : 0;
  const bool is_double = problem_.dtype == DType::float64;
  const void* const scale = is_double ? static_cast<const void*>(&scale_double) : &scale_float;
  const void* const of_old = is_double ? static_cast<const void*>(&of_old_double) : &of_old_float;
  check_blas(cublasLtMatmul(device_.blas(), plan->operation.get(), scale, b, plan->first.get(), a, plan->second.get(),
                            of_old, out, plan->result.get(), out, plan->result.get(), &plan->algorithm, workspace,
                            plan->workspace, stream),
             where_, "multiplying matrices");
}

}  // namespace symbind::cuda_backend
