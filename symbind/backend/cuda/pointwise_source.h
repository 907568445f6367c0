// Programs of elementwise operators (ops/pointwise.h) as CUDA C: what NVRTC compiles on the machine that runs them, so
// the text stands on its own.
#pragma once

#include <string>

#include "symbind/ops/pointwise.h"

namespace symbind::cuda_backend {

// Can an operator with these parameters be written as an expression over floats?
bool has_expression(const PointwiseInstruction& instruction);

// With some parameters, if not with all?
bool may_have_expression(const OpDef& op);

// Types that programs are written for.
inline bool has_programs(DType dtype) {
  return dtype == DType::float32 || dtype == DType::float16 || dtype == DType::bfloat16;
}

// A kernel `pointwise(const element* in0, …, element* out, long long count)`. An input may be the output.
std::string pointwise_source(const Pointwise& program, DType dtype);

}  // namespace symbind::cuda_backend
