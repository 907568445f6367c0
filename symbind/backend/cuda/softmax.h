// Softmax along an axis, for the softmax operators and for loss heads.
#pragma once

#include <cuda_runtime_api.h>

#include "symbind/core/axis_view.h"
#include "symbind/core/dtype.h"

namespace symbind::cuda_backend {

struct SoftmaxRows : AxisView {
  double factor = 1;  // of the data
  bool logarithm = false;
};

// y may be x.
void queue_softmax(cudaStream_t stream, DType dtype, const void* x, void* y, const SoftmaxRows& rows);

}  // namespace symbind::cuda_backend
