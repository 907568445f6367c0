// Dispatch to the C++ type of an element type, among the types that a kernel is compiled for.
#pragma once

#include <type_traits>

#include "symbind/core/dtype.h"

namespace symbind {

// Calls function(std::type_identity<T>{}) with the type that matches `dtype`.
template <class First, class... Rest, class Function>
decltype(auto) visit_types(DType dtype, Function&& function) {
  if (dtype == dtype_of<First>()) return function(std::type_identity<First>{});
  if constexpr (sizeof...(Rest) > 0)
    return visit_types<Rest...>(dtype, function);
  else
    fail_unknown_dtype(dtype);
}

}  // namespace symbind
