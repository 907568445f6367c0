// Programs of elementwise operators (ops/pointwise.h) as CUDA C: what NVRTC compiles on the machine that runs them, so
// the text stands on its own.
#pragma once

#include <string>

#include "symbind/ops/pointwise.h"

namespace symbind::cuda_backend {

// Can an operator with these parameters be written as an expression over floats?
bool has_expression(const PointwiseInstruction& instruction);

// A kernel `pointwise(const float* in0, …, float* out, long long count)`. An input may be the output.
std::string pointwise_source(const Pointwise& program);

}  // namespace symbind::cuda_backend
