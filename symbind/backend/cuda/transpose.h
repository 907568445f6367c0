// Transpositions of many matrices: out[n][j][i] = in[n][i][j]. Layouts and the order of weights differ by nothing else.
#pragma once

#include <cstddef>
#include <cstdint>

#include <cuda_runtime_api.h>

namespace symbind::cuda_backend {

struct Matrices {
  int64_t batch = 0, rows = 0, columns = 0;
  // Is the transposition a copy?
  bool trivial() const { return rows == 1 || columns == 1; }
};

// Elements of 1, 2, 4 or 8 bytes. In and out must not overlap.
void queue_transpose(cudaStream_t stream, const void* in, void* out, size_t element_bytes, const Matrices& size);

}  // namespace symbind::cuda_backend
