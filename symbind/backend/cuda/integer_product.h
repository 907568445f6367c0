// Products of integer matrices, which cuBLASLt does not support. They wrap as on a CPU.
#pragma once

#include <cuda_runtime_api.h>

#include "symbind/backend/cuda/matmul.h"

namespace symbind::cuda_backend {

void queue_integer_product(cudaStream_t stream, const MatmulProblem& problem, const void* a, const void* b, void* out);

}  // namespace symbind::cuda_backend
