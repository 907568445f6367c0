// The kernels of own_operator.cu. `stream` is a cudaStream_t.
#pragma once

#include <cstdint>

void queue_scaled_swish(void* stream, const float* x, float* y, int64_t count, float beta);
void queue_scaled_swish_grad(void* stream, const float* dy, const float* x, float* dx, int64_t count, float beta);
