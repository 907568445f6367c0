// Softmax along the middle axis of (outer, length, inner), for the operators that are one and for loss heads.
#pragma once

#include <cuda_runtime_api.h>

#include "symbind/core/dtype.h"

namespace symbind::cuda_backend {

struct SoftmaxRows {
  int64_t outer = 0, length = 0, inner = 0;
  double factor = 1;  // of the data
  bool logarithm = false;
};

// y may be x.
void queue_softmax(cudaStream_t stream, DType dtype, const void* x, void* y, const SoftmaxRows& rows);

}  // namespace symbind::cuda_backend
