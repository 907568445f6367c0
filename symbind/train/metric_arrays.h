// Shared by metrics: arrays by name and on the host, views along one axis, and checks of pairs.
#pragma once

#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include "symbind/core/axis_view.h"
#include "symbind/core/ndarray.h"
#include "symbind/train/metric.h"

namespace symbind::metric {

// The array itself if it is in host memory, else a copy there; pending work on it is complete either way.
NDArray on_host(const NDArray& array);

// Calls function(const T* elements) for an array on the host.
template <class Function>
decltype(auto) visit_elements(const NDArray& array, Function&& function) {
  return visit_dtype(array.dtype(), [&](auto type) -> decltype(auto) {
    using T = typename decltype(type)::type;
    return function(static_cast<const T*>(array.data()));
  });
}

// The type that MXNet's metrics, which use NumPy, compute in: float32 for float32, double for everything else.
template <class T>
using Precision = std::conditional_t<std::is_same_v<T, float>, float, double>;

// The sum of at(i) for `count` values of i from `begin` on, rounded as in NumPy: pairwise summation of halves, down to
// 128 elements in eight interleaved sums.
template <class T, class At>
T pairwise_sum(int64_t begin, int64_t count, const At& at) {
  if (count > 128) {
    const int64_t half = count / 2 / 8 * 8;
    return pairwise_sum<T>(begin, half, at) + pairwise_sum<T>(begin + half, count - half, at);
  }
  T sums[8] = {};
  const int64_t whole = count / 8 * 8;
  for (int64_t i = 0; i < whole; ++i) sums[i % 8] += at(begin + i);
  T sum = ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
  for (int64_t i = whole; i < count; ++i) sum += at(begin + i);
  return sum;
}

template <class T>
constexpr bool is_nan(T value) {
  if constexpr (std::is_integral_v<T>)
    return false;
  else
    return value != value;
}

AxisView rows_along(const Shape& shape, int64_t axis, const std::string& metric);
// An array of one axis counts as a column where numbers are compared.
Shape with_columns(const Shape& shape);

// The arrays with the wanted names, in that order; all when none are named. `what` they are is for the error.
std::vector<NDArray> chosen(const std::string& metric, const char* what, const NamedList& arrays,
                            const std::vector<std::string>& wanted);
// Those of the named arrays that there are, in their own order; all when none are named.
NamedList visible(const NamedList& arrays, const std::vector<std::string>& names);

// There must be as many labels as predictions; both may be empty.
void check_counts(const std::string& metric, const std::vector<NDArray>& labels, const std::vector<NDArray>& preds);
[[noreturn]] void fail_shapes(const std::string& metric, const std::string& rule, const NDArray& label,
                              const NDArray& pred);

// A label that cross entropy does not count.
[[noreturn]] void fail_label(const std::string& metric, int64_t label, int64_t classes);

// The classes in a label: truncated as by a cast to int.
std::vector<int64_t> classes_of(const NDArray& label);
std::string class_text(int64_t label);  // for errors: a label that was no whole number is called so
// The index of the greatest element of each row, of equal ones the first; no_class for a row with a NaN.
inline constexpr int64_t no_class = -1;
std::vector<int64_t> argmax(const NDArray& pred, int64_t axis, const std::string& metric);

}  // namespace symbind::metric
