// A half-precision node as a float32 one: arrays are converted in scratch, and the best float32 implementation of the
// node's device runs. For operators whose work far exceeds the conversion.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "symbind/ops/floating.h"
#include "symbind/passes/target.h"

namespace symbind {

inline constexpr size_t most_arrays_as_float = 16;  // inputs, and outputs, of a node

// How the device converts an array.
using ConvertArray = void (*)(const Args& args, void* dst, DType to, const void* src, DType from, int64_t count);

std::unique_ptr<Kernel> build_as_float(const NodeView& node, ConvertArray convert);

}  // namespace symbind
