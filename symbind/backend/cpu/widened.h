// Kernels that compute in float or double for arrays of any type: other types are converted in scratch. For operators
// whose work far exceeds the conversion, or whose arrays are small.
#pragma once

#include <functional>
#include <memory>
#include <type_traits>
#include <vector>

#include "symbind/passes/target.h"

namespace symbind::cpu_backend {

// The inputs and outputs, all of one type C.
template <class C>
using WidenedBody = std::function<void(const C* const* in, C* const* out)>;

// Inputs that are read only for their shape are null. `spare` elements of type C of scratch follow the outputs as an
// additional output.
template <class C>
std::unique_ptr<Kernel> build_widened(const NodeView& node, WidenedBody<C> body, int64_t spare);

// Double where any array is, else float.
DType widened_type(const NodeView& node);

// make_body(type_identity<C>) returns the body for the type C it computes in.
template <class MakeBody>
std::unique_ptr<Kernel> widened_kernel(const NodeView& node, MakeBody make_body, int64_t spare = 0) {
  if (widened_type(node) == DType::float64)
    return build_widened<double>(node, make_body(std::type_identity<double>{}), spare);
  return build_widened<float>(node, make_body(std::type_identity<float>{}), spare);
}

}  // namespace symbind::cpu_backend
