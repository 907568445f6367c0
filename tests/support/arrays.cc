#include "tests/support/arrays.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <sstream>

namespace symbind::testing {

Tolerance tolerance_of(DType dtype) {
  switch (dtype) {
    case DType::float64:
      return {1e-11, 1e-12, 1e-12};
    case DType::float32:
      return {1e-5, 1e-6, 2e-6};
    case DType::float16:
      return {4e-3, 1e-3, 2e-3};
    case DType::bfloat16:
      return {3e-2, 1e-2, 1.5e-2};
    default:
      return {};
  }
}

std::string index_text(const Shape& shape, int64_t position) {
  if (!shape.known() || shape.rank() == 0) return join(position);
  const auto strides = shape.strides();
  std::vector<int64_t> index;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    const int64_t step = strides[static_cast<size_t>(axis)];
    index.push_back(position / step);
    position %= step;
  }
  return "(" + comma_separated(index) + ")";
}

::testing::AssertionResult all_close(const std::vector<double>& actual, const std::vector<double>& expected,
                                     Tolerance tolerance, const Shape& shape) {
  if (actual.size() != expected.size())
    return ::testing::AssertionFailure() << actual.size() << " values, expected " << expected.size();
  double largest = 0;
  for (double value : expected)
    if (std::isfinite(value)) largest = std::max(largest, std::abs(value));

  size_t different = 0, worst = 0;
  double worst_excess = -1;
  for (size_t i = 0; i < actual.size(); ++i) {
    const double a = actual[i], e = expected[i];
    if (a == e || (std::isnan(a) && std::isnan(e))) continue;
    const double allowed = tolerance.absolute + tolerance.relative * std::abs(e) + tolerance.of_largest * largest;
    const double difference = std::abs(a - e);
    if (std::isfinite(a) && std::isfinite(e) && difference <= allowed) continue;
    ++different;
    const double excess = std::isfinite(difference) ? difference - allowed : INFINITY;
    if (excess > worst_excess) {
      worst_excess = excess;
      worst = i;
    }
  }
  if (different == 0) return ::testing::AssertionSuccess();

  std::ostringstream text;
  text.precision(9);
  const double allowed =
      tolerance.absolute + tolerance.relative * std::abs(expected[worst]) + tolerance.of_largest * largest;
  text << different << " of " << actual.size() << " values differ, most at "
       << index_text(shape, static_cast<int64_t>(worst)) << ": " << actual[worst] << ", expected " << expected[worst]
       << " (difference " << std::abs(actual[worst] - expected[worst]) << ", allowed " << allowed << ")";
  if (actual.size() <= 24) {
    text << "\n  actual:  ";
    for (double value : actual) text << " " << value;
    text << "\n  expected:";
    for (double value : expected) text << " " << value;
  }
  return ::testing::AssertionFailure() << text.str();
}

::testing::AssertionResult all_close(const NDArray& actual, const NDArray& expected, Tolerance tolerance) {
  if (!actual || !expected) return ::testing::AssertionFailure() << "there is no array to compare";
  if (actual.shape() != expected.shape())
    return ::testing::AssertionFailure() << "shape " << actual.shape() << ", expected " << expected.shape();
  if (actual.dtype() != expected.dtype())
    return ::testing::AssertionFailure() << "type " << actual.dtype() << ", expected " << expected.dtype();
  if (actual.dtype() == DType::int64) {  // a double cannot hold all of them
    const auto a = actual.to_vector<int64_t>(), e = expected.to_vector<int64_t>();
    const auto [at, other] = std::mismatch(a.begin(), a.end(), e.begin());
    if (at != a.end())
      return ::testing::AssertionFailure()
             << "at " << index_text(actual.shape(), at - a.begin()) << ": " << *at << ", expected " << *other;
    return ::testing::AssertionSuccess();
  }
  return all_close(actual.to_vector<double>(), expected.to_vector<double>(), tolerance, actual.shape());
}

::testing::AssertionResult all_close(const NDArray& actual, const NDArray& expected) {
  return all_close(actual, expected, tolerance_of(expected ? expected.dtype() : DType::none));
}

::testing::AssertionResult same_bits(const NDArray& actual, const NDArray& expected) {
  if (const auto equal = all_close(actual, expected, {}); !equal) return equal;
  const NDArray a = actual.as_in_context(cpu()), e = expected.as_in_context(cpu());
  a.wait_to_read();
  e.wait_to_read();
  if (a.bytes() > 0 && std::memcmp(a.data(), e.data(), a.bytes()) != 0)
    return ::testing::AssertionFailure() << "equal values, but other bits (the sign of a zero, or a NaN)";
  return ::testing::AssertionSuccess();
}

NDArray random_array(const Shape& shape, uint64_t seed, double low, double high, DType dtype, Context context) {
  std::mt19937_64 engine(seed * 0x9E3779B97F4A7C15u + 1);
  const bool whole = !is_floating(dtype);
  const double grid = whole ? 1 : 64;
  const auto steps = static_cast<uint64_t>(std::max(0.0, std::floor((high - low) * grid))) + 1;
  std::vector<double> values(static_cast<size_t>(shape.size()));
  for (double& value : values) value = (whole ? std::ceil(low) : low) + static_cast<double>(engine() % steps) / grid;
  return array(values, shape, context, dtype);
}

NDArray counted(const Shape& shape, DType dtype, Context context) {
  std::vector<double> values(static_cast<size_t>(shape.size()));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i + 1);
  return array(values, shape, context, dtype);
}

std::vector<Context> all_devices() {
  std::vector<Context> devices{cpu(0)};
  if (num_gpus() > 0) devices.push_back(gpu(num_gpus() - 1));
  return devices;
}

}  // namespace symbind::testing
