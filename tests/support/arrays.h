// Arrays for tests: random ones from a fixed seed, and comparisons that report where and by how much two arrays differ.
#pragma once

#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "symbind/core/ndarray.h"

namespace symbind::testing {

// Two values agree when |actual - expected| <= absolute + relative * |expected|. `of_largest` adds that fraction of the
// largest expected magnitude: the error of a sum depends on its largest terms, not on its result.
struct Tolerance {
  double relative = 0;
  double absolute = 0;
  double of_largest = 0;
};

// The tolerance for a few roundings in each type; integers must agree exactly.
Tolerance tolerance_of(DType dtype);

// Equal shapes and types, and values within the tolerance. NaN agrees with NaN, an infinity with itself.
::testing::AssertionResult all_close(const NDArray& actual, const NDArray& expected, Tolerance tolerance);
::testing::AssertionResult all_close(const NDArray& actual, const NDArray& expected);  // tolerance_of its type
// Values alone, read as double.
::testing::AssertionResult all_close(const std::vector<double>& actual, const std::vector<double>& expected,
                                     Tolerance tolerance, const Shape& shape = {});
// Bit for bit.
::testing::AssertionResult same_bits(const NDArray& actual, const NDArray& expected);

// Multiples of 1/64 in [low, high] (whole numbers for integers): float16 holds them exactly, and equal values occur now
// and then. The same seed gives the same values whatever the type.
NDArray random_array(const Shape& shape, uint64_t seed, double low = -1, double high = 1, DType dtype = DType::float32,
                     Context context = cpu());

// 1, 2, 3, …
NDArray counted(const Shape& shape, DType dtype = DType::float32, Context context = cpu());

// Every kind of device on this machine. Of several GPUs the last, so that a kernel that runs on the first is noticed.
std::vector<Context> all_devices();

// "(1,0,2)" of the element at a position in row-major order.
std::string index_text(const Shape& shape, int64_t position);

// What() of the Error a call throws; empty when it throws none.
template <class Function>
std::string error_of(Function&& function) {
  try {
    function();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

// Passes when the call throws an Error whose message contains every part.
template <class Function, class... Parts>
::testing::AssertionResult fails_with(Function&& function, const Parts&... parts) {
  const std::string message = error_of(function);
  if (message.empty()) return ::testing::AssertionFailure() << "no error, or one without a message";
  for (const std::string& part : {std::string(parts)...})
    if (message.find(part) == std::string::npos)
      return ::testing::AssertionFailure() << "the error does not say \"" << part << "\": " << message;
  return ::testing::AssertionSuccess();
}

}  // namespace symbind::testing
