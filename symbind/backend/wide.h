// The types that elements are computed in: float for half precision, int32_t for small integers and booleans, any other
// type as itself.
#pragma once

#include <cstdint>
#include <type_traits>

#include "symbind/backend/visit_types.h"
#include "symbind/core/dtype.h"

namespace symbind::functions {

template <class T>
using Wide = std::conditional_t<std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>, float,
                                std::conditional_t<std::is_integral_v<T> && sizeof(T) == 1, int32_t, T>>;

constexpr DType wide(DType dtype) {
  switch (dtype) {
    case DType::float16:
    case DType::bfloat16:
      return DType::float32;
    case DType::int8:
    case DType::uint8:
    case DType::boolean:
      return DType::int32;
    default:
      return dtype;
  }
}

// Calls function with std::type_identity of the C++ type of a wide type.
template <class Function>
decltype(auto) visit_wide(DType dtype, Function&& function) {
  return visit_types<float, double, int32_t, int64_t>(wide(dtype), function);
}

}  // namespace symbind::functions
