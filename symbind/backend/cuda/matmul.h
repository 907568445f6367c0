// Products of row-major matrices through cuBLASLt: out = scale·a·b, optionally with a bias along the columns and a
// ReLU, or out += scale·a·b. The algorithm is chosen at construction.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "symbind/backend/cuda/device.h"
#include "symbind/passes/target.h"

namespace symbind::cuda_backend {

// The elements from one row of a matrix to the next, and from one matrix of a batch to the next; 0: as many as they
// have.
struct MatrixSteps {
  int64_t row = 0, matrix = 0;
};

// a is (rows, inner), or (inner, rows) when transposed; b is (inner, columns), or (columns, inner) when transposed. A
// batch of such products has its matrices one after the other in each array, unless `steps` are given. Matrices of the
// result may be interleaved, but fill their array.
struct MatmulProblem {
  int64_t rows = 0, inner = 0, columns = 0;
  bool transpose_a = false, transpose_b = false;
  DType dtype = DType::float32;
  bool bias = false;
  bool relu = false;
  int64_t batch = 1;
  double scale = 1;         // of the product
  bool accumulate = false;  // the product is added to out
  MatrixSteps a_steps = {}, b_steps = {}, out_steps = {};
  size_t alignment = 64;  // in bytes, that the addresses usually have: device memory and every offset in an arena do
};

// The reason why a node's arrays are not supported in a product, or empty.
std::string refuse_product(const NodeView& node);

class Matmul {
 public:
  Matmul(CudaDevice& device, const MatmulProblem& problem, std::string where);
  ~Matmul();

  size_t scratch_bytes() const { return scratch_bytes_; }
  // What cuBLASLt does in the same pass; the caller must do the rest.
  bool adds_bias() const { return adds_bias_; }
  bool applies_relu() const { return applies_relu_; }

  // Assigns out, or adds to it; bias is read if adds_bias().
  void run(cudaStream_t stream, const void* a, const void* b, const void* bias, void* out, void* scratch);

 private:
  struct Plan;
  std::unique_ptr<Plan> plan_for(size_t alignment, bool with_epilogue, size_t workspace) const;

  CudaDevice& device_;
  MatmulProblem problem_;
  std::string where_;
  bool adds_bias_ = false, applies_relu_ = false;
  size_t scratch_bytes_ = 0;
  std::unique_ptr<Plan> aligned_;
  std::unique_ptr<Plan> unaligned_;  // for views at odd offsets; created on first use
  std::mutex mutex_;
};

}  // namespace symbind::cuda_backend
