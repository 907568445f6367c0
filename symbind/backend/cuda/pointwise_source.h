// Programs of elementwise operators (ops/pointwise.h) as CUDA C++, which NVRTC compiles on the machine that runs them.
// The functions are those of backend/functions.h, whose text is part of the library.
#pragma once

#include <span>
#include <string>

#include "symbind/ops/pointwise.h"

namespace symbind::cuda_backend {

// Is an operator with these parameters a function of backend/function_tables.h?
bool has_function(const PointwiseInstruction& instruction);

// With some parameters, if not with all?
bool has_functions(const OpDef& op);

// Types that programs are written for.
inline bool has_programs(DType dtype) {
  return dtype == DType::float32 || dtype == DType::float16 || dtype == DType::bfloat16;
}

// Two kernels (const Element* in0, …, Element* out, long long count), of which `pointwise_packs` reads and writes 16
// bytes at a time and needs addresses that are multiples of 16. An input may be the output.
std::string pointwise_source(const Pointwise& program, DType dtype);

// What that text includes.
struct SourceHeader {
  const char *name, *text;
};
std::span<const SourceHeader> pointwise_headers();

}  // namespace symbind::cuda_backend
