// The gradient of max pooling: a kernel of our own, since oneDNN's requires a workspace with the index of each maximum,
// and searching again is cheaper than writing and reading that.
#pragma once

#include <memory>

#include "symbind/ops/pool.h"
#include "symbind/passes/target.h"

namespace symbind::onednn {

// Float32, with the channels last in memory; inputs (out_grad, data, …), output data_grad. The first maximum of a
// window in row-major order gets the gradient.
std::unique_ptr<Kernel> build_max_pool_grad(const PoolingSize& size);

}  // namespace symbind::onednn
