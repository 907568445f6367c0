// What metrics share: arrays on the host, seen along one axis, and the checks of pairs.
#pragma once

#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include "symbind/core/axis_view.h"
#include "symbind/core/ndarray.h"

namespace symbind::metric {

// The array itself where it is in the host's memory, else a copy there; finished either way.
NDArray on_host(const NDArray& array);

// Calls function(const T* elements) for an array on the host.
template <class Function>
decltype(auto) visit_elements(const NDArray& array, Function&& function) {
  return visit_dtype(array.dtype(), [&](auto type) -> decltype(auto) {
    using T = typename decltype(type)::type;
    return function(static_cast<const T*>(array.data()));
  });
}

template <class T>
constexpr bool is_nan(T value) {
  if constexpr (std::is_integral_v<T>)
    return false;
  else
    return value != value;
}

AxisView rows_along(const Shape& shape, int64_t axis, const std::string& metric);

// As many labels as predictions, at least one of each not being demanded.
void check_counts(const std::string& metric, const std::vector<NDArray>& labels, const std::vector<NDArray>& preds);
[[noreturn]] void fail_shapes(const std::string& metric, const std::string& rule, const NDArray& label,
                              const NDArray& pred);

// The classes in a label: whole parts, as a cast to int makes them.
std::vector<int64_t> classes_of(const NDArray& label);
// The index of the greatest element of each row, of equal ones the first; no_class for a row with a NaN.
inline constexpr int64_t no_class = -1;
std::vector<int64_t> argmax(const NDArray& pred, int64_t axis, const std::string& metric);

}  // namespace symbind::metric
