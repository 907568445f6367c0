// Kernels for movements (backend/movements.h), whatever operator they come from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include <cuda_runtime_api.h>

#include "symbind/backend/movements.h"
#include "symbind/passes/target.h"

namespace symbind::cuda_backend {

std::string refuse_movement(const NodeView& node, const Movement& movement);

// Output 0 is dense and gathers elements of input 0; or input 0 is dense, and output 0 is zero except where its
// elements go.
std::unique_ptr<Kernel> build_take(const NodeView& node, const Movement& movement);
std::unique_ptr<Kernel> build_put(const NodeView& node, const Movement& movement);

// Writes dense elements, or one element of the given bits, to the elements of a merged movement. `element`: its bytes.
void queue_put(cudaStream_t stream, const Movement& movement, size_t element, void* to, const void* dense);
void queue_fill_elements(cudaStream_t stream, const Movement& movement, size_t element, void* to, uint64_t bits);

}  // namespace symbind::cuda_backend
