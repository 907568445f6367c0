// Programs of elementwise operators (ops/pointwise.h) as CUDA C++, which NVRTC compiles on the machine that runs them.
// The functions are those of backend/functions.h, whose text is part of the library.
#pragma once

#include <span>
#include <string>

#include "symbind/core/shape.h"
#include "symbind/ops/pointwise.h"

namespace symbind::cuda_backend {

// Is an operator with these parameters a function of backend/function_tables.h?
bool has_function(const PointwiseInstruction& instruction);

// With some parameters, if not with all?
bool has_functions(const OpDef& op);

// Does an operator broadcast two arrays to one shape and apply a function of backend/function_tables.h?
bool is_broadcast(const OpDef& op);

// A kernel `pointwise` (const Input0* in0, …, Element* out, long long count) for elements of type `dtype`, from inputs
// of the given types. An input whose elements have the size of the output's may be the output. Where has_packs, there
// is also `pointwise_packs`, which reads and writes 16 bytes at a time and needs addresses that are multiples of 16.
std::string pointwise_source(const Pointwise& program, DType dtype, std::span<const DType> input_types);
// All types must be the same. Packs of signed bytes divided by two had wrong elements on an H200 (CUDA 13.0), single
// elements were right.
bool has_packs(DType dtype, std::span<const DType> input_types);

// One kernel `broadcast` (const Input0* in0, const Input1* in1, Element* out, long long count, BroadcastSteps steps)
// for a program of two inputs, which are read along the axes of the result.
struct BroadcastSteps {
  int rank = 0;
  unsigned extent[Shape::max_rank] = {}, step_a[Shape::max_rank] = {}, step_b[Shape::max_rank] = {};
};
std::string broadcast_source(const Pointwise& program, DType dtype, std::span<const DType> input_types);

// Two kernels (const Element* in0, …, Element* out0, …, long long rows) for a program with several results. Like those
// above, but `cell_packs` reads and writes `cell_width` elements at a time, where that is more than 1. An input that is
// read whole may be an output that is written whole.
std::string cell_source(const PointwiseCell& cell, DType dtype);
// The number of neighbouring elements, up to 16 bytes, into which the columns of all arrays divide.
int cell_width(const PointwiseCell& cell, DType dtype);

// What that text includes.
struct SourceHeader {
  const char *name, *text;
};
std::span<const SourceHeader> pointwise_headers();

}  // namespace symbind::cuda_backend
