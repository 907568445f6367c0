#include "symbind/ops/reduce.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include <gtest/gtest.h>

#include "symbind/core/parallel.h"
#include "symbind/exec/executor.h"
#include "symbind/exec/invoke.h"

#include "tests/support/arrays.h"
#include "tests/support/gradient_check.h"

namespace symbind::testing {
namespace {

const auto x = Symbol::variable("x");

// The sums, element by element, in double.
std::vector<double> plain_sum(const NDArray& data, const std::vector<bool>& reduced) {
  const Shape& shape = data.shape();
  int64_t results = 1;
  for (int axis = 0; axis < shape.rank(); ++axis)
    if (!reduced[static_cast<size_t>(axis)]) results *= shape[axis];
  std::vector<double> sums(static_cast<size_t>(results), 0.0);
  const auto values = data.to_vector<double>();
  for (int64_t i = 0; i < shape.size(); ++i) {
    int64_t rest = i, at = 0, step = 1;
    for (int axis = shape.rank() - 1; axis >= 0; --axis) {
      if (!reduced[static_cast<size_t>(axis)]) {
        at += rest % shape[axis] * step;
        step *= shape[axis];
      }
      rest /= shape[axis];
    }
    sums[static_cast<size_t>(at)] += values[static_cast<size_t>(i)];
  }
  return sums;
}

TEST(Sum, AgreesWithAPlainLoopForEverySetOfAxes) {
  for (const Shape& shape : {Shape{7}, Shape{3, 5}, Shape{4, 3, 130}, Shape{2, 3, 4, 5}, Shape{1, 6, 1, 3}})
    for (unsigned set = 1; set < (1u << shape.rank()); ++set)
      for (DType dtype : {DType::float32, DType::float64, DType::int32, DType::int8, DType::bfloat16}) {
        Tuple axes;
        std::vector<bool> reduced;
        for (int axis = 0; axis < shape.rank(); ++axis) {
          reduced.push_back(set >> axis & 1u);
          if (reduced.back()) axes.push_back(axis);
        }
        const auto data = random_array(shape, set, -2, 2, dtype);
        const auto expected =
            dtype == DType::int8
                ? array(plain_sum(data, reduced), {sum(data, {.axis = axes}).size()}, cpu(), dtype).to_vector<double>()
                : plain_sum(data, reduced);
        auto tolerance = tolerance_of(dtype);
        tolerance.absolute += dtype == DType::float32 ? 1e-5 : 0;
        EXPECT_TRUE(all_close(sum(data, {.axis = axes}).to_vector<double>(), expected, tolerance))
            << shape << " over " << comma_separated(axes) << " of " << dtype;
      }
}

TEST(Nansum, LeavesOutNaNOfTheDataAlone) {
  const double nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
  const NDArray data = array(std::vector<double>{nan, 1, 2, nan, nan, 3, inf, nan, -inf}, {3, 1, 3});
  EXPECT_EQ(nansum(data, {.axis = Tuple{1}}).to_vector<double>(),
            (std::vector<double>{0, 1, 2, 0, 0, 3, inf, 0, -inf}));
  const auto rows = nansum(data, {.axis = Tuple{2}}).to_vector<double>();
  EXPECT_EQ(rows[0], 3);
  EXPECT_EQ(rows[1], 3);
  EXPECT_TRUE(std::isnan(rows[2]));
  EXPECT_EQ(nansum(data, {.axis = Tuple{0}}).to_vector<double>(), (std::vector<double>{inf, 1, -inf}));
  // Infinities that cancel are NaN, which is a sum and no element: the sum over another axis is NaN, too.
  const NDArray cancels = array(std::vector<double>{inf, -inf, nan, 1, 2, nan, 3, 4}, {2, 2, 2});
  const auto middle = nansum(cancels, {.axis = Tuple{0, 2}}).to_vector<double>();
  EXPECT_TRUE(std::isnan(middle[0]));
  EXPECT_EQ(middle[1], 8);
}

TEST(Sum, KeepsTheDigitsOfLongSums) {
  const auto tenths = full({3000000}, 0.1f);
  EXPECT_NEAR(sum(tenths).item(), 3e5, 3e5 * 1e-6);
  const auto columns = full({500000, 3}, 0.1f);
  for (double value : sum(columns, {.axis = Tuple{0}}).to_vector<double>()) EXPECT_NEAR(value, 5e4, 5e4 * 1e-6);
}

TEST(Sum, OfEverythingHasOneElementAndOneAxis) {
  const auto data = counted({2, 3});
  EXPECT_EQ(sum(data).shape(), Shape{1});
  EXPECT_EQ(sum(data, {.axis = Tuple{}}).shape(), Shape{1});
  EXPECT_EQ(sum(data, {.keepdims = true}).shape(), (Shape{1, 1}));
  EXPECT_EQ(sum(data).item(), 21);
  EXPECT_EQ(sum(data, {.axis = Tuple{-1}}).to_vector<int>(), (std::vector<int>{6, 15}));
  EXPECT_EQ(sum(data, {.axis = Tuple{0}, .exclude = true}).to_vector<int>(), (std::vector<int>{6, 15}));
  EXPECT_EQ(sum(data, {.axis = Tuple{0, 1}, .exclude = true}).to_vector<int>(), data.to_vector<int>());
}

TEST(Mean, DividesByTheNumberOfElements) {
  EXPECT_EQ(mean(counted({2, 4}), {.axis = Tuple{1}}).to_vector<double>(), (std::vector<double>{2.5, 6.5}));
  EXPECT_EQ(mean(array({1, 2, 4}, cpu(), DType::int32)).item(), 2);
}

// Lengths around those of a vector, of a row that is split into lanes, and of a row that is split over threads.
const std::vector<int64_t> lengths = {1, 2, 3, 4, 5, 15, 31, 32, 33, 63, 64, 65, 95, 97, 128, 1000, 4099, 70001};

// `length` numbers whose products leave float's range, if there are many, and return to about 1. Long rows have ones in
// between, so that double's range is enough for the products of every part.
std::vector<double> far_ranging(int64_t length, std::mt19937& random) {
  const int64_t count = std::min<int64_t>(length, 300);
  std::vector<double> row(static_cast<size_t>(length), 1.0);
  double exponent = 0;
  for (int64_t i = 0; i < count; ++i) {
    const bool returns = count - i <= 8 || std::abs(exponent) > 400;
    const int step =
        returns ? static_cast<int>(std::clamp(-exponent, -60.0, 60.0)) : static_cast<int>(random() % 81) - 40;
    const float mantissa = 0.7f + static_cast<float>(random() % 10000) * 6e-5f;
    const float number = std::ldexp(random() % 2 ? mantissa : -mantissa, step);
    exponent += std::log2(std::abs(static_cast<double>(number)));
    row[static_cast<size_t>(i * length / count)] = static_cast<double>(number);
  }
  return row;
}

TEST(Prod, RoundsOnceWhereverTheProductsOfAPartAre) {
  std::mt19937 random(7);
  for (const int64_t length : lengths)
    for (int round = 0; round < 3; ++round) {
      const std::vector<double> row = far_ranging(length, random);
      long double expected = 1;
      for (const double number : row) expected *= static_cast<long double>(number);
      const double exact = static_cast<double>(expected), half_unit = std::abs(exact) * 0x1p-24 * 1.0001;
      const NDArray data = array(row, {1, length}), columns = array(row, {length, 1});
      EXPECT_NEAR(prod(data, {.axis = Tuple{1}}).item(), exact, half_unit) << length << " numbers";
      EXPECT_NEAR(prod(columns, {.axis = Tuple{0}}).item(), exact, half_unit) << length << " numbers";
      EXPECT_NEAR(nanprod(data, {.axis = Tuple{1}}).item(), exact, half_unit) << length << " numbers";
    }
}

TEST(Prod, OverflowsAndUnderflowsAtTheEndAlone) {
  for (const int64_t length : {4, 64, 100}) {
    std::vector<double> row(static_cast<size_t>(length), 1.0);
    const auto product_with = [&](double first, double second, double last) {
      row[0] = first;
      row[1] = second;
      row.back() = last;
      return prod(array(row, {1, length}), {.axis = Tuple{1}}).item();
    };
    EXPECT_EQ(product_with(0x1p100, 0x1p100, 0x1p-90), 0x1p110) << length;
    EXPECT_EQ(product_with(0x1p-100, -0x1p-100, 0x1p90), -0x1p-110) << length;
    EXPECT_EQ(product_with(0x1p100, -0x1p100, 1), -INFINITY) << length;
    EXPECT_EQ(product_with(0x1p-100, 0x1p-100, 1), 0) << length;
  }
}

TEST(Prod, PassesZerosInfinitiesAndNaN) {
  for (const int64_t length : {5, 64, 75})
    for (int64_t at = 0; at < length; ++at) {
      std::vector<double> row(static_cast<size_t>(length), -1.0);
      const double sign = length % 2 == 0 ? -1 : 1;  // of the other numbers
      const auto product_with = [&](double number, auto op) {
        row[static_cast<size_t>(at)] = number;
        return op(array(row, {1, length}), {.axis = Tuple{1}}).item();
      };
      EXPECT_EQ(product_with(0, prod), 0) << at << " of " << length;
      EXPECT_EQ(product_with(INFINITY, prod), sign * INFINITY) << at << " of " << length;
      EXPECT_TRUE(std::isnan(product_with(NAN, prod))) << at << " of " << length;
      EXPECT_EQ(product_with(NAN, nanprod), sign) << at << " of " << length;
      row[static_cast<size_t>((at + 1) % length)] = 0;
      EXPECT_TRUE(std::isnan(product_with(INFINITY, prod))) << at << " of " << length;
      EXPECT_TRUE(std::isnan(product_with(-INFINITY, nanprod))) << at << " of " << length;
    }
}

// Products of small powers of two and signs, which every type has.
TEST(Prod, IsExactInEveryTypeWherePossible) {
  for (const int64_t length : lengths)
    for (const DType dtype :
         {DType::float32, DType::float64, DType::float16, DType::bfloat16, DType::int32, DType::int8, DType::int64}) {
      std::vector<double> row(static_cast<size_t>(length), 1.0);
      for (const int64_t at : {0, 1, 2, 3, 30, 31, 32, 63, 64, 90, 999})
        if (at < length) row[static_cast<size_t>(at)] = at % 3 == 0 ? 2 : -1;
      double expected = 1;
      for (const double number : row) expected *= number;
      const NDArray data = array(row, {1, length}, cpu(), dtype);
      EXPECT_EQ(prod(data, {.axis = Tuple{1}}).item(), expected) << length << " of " << dtype;
      EXPECT_EQ(nanprod(data, {.axis = Tuple{1}}).item(), expected) << length << " of " << dtype;
    }
}

TEST(Norm, AgreesWithAPlainLoopForEveryLength) {
  for (const int64_t length : lengths)
    for (const DType dtype : {DType::float32, DType::float64, DType::float16, DType::bfloat16}) {
      const NDArray data = random_array({1, length}, 4, -1, 1, dtype);
      double squares = 0, magnitudes = 0;
      for (const double number : data.to_vector<double>()) {
        squares += number * number;
        magnitudes += std::abs(number);
      }
      const double relative = tolerance_of(dtype).relative;
      EXPECT_NEAR(norm(data, {.axis = Tuple{1}}).item(), std::sqrt(squares), relative * std::sqrt(squares))
          << length << " of " << dtype;
      EXPECT_NEAR(norm(data, {.ord = 1, .axis = Tuple{1}}).item(), magnitudes, relative * magnitudes)
          << length << " of " << dtype;
    }
}

TEST(Prod, DoesNotDependOnTheNumberOfThreads) {
  std::mt19937 random(8);
  for (const Shape& shape : {Shape{64, 4099}, Shape{3, 70001}, Shape{1, 300000}}) {
    std::vector<double> numbers;
    for (int64_t row = 0; row < shape[0]; ++row)
      for (const double number : far_ranging(shape[1], random)) numbers.push_back(number);
    const NDArray data = array(numbers, shape);
    const auto with_threads = [&](int threads) {
      const ThreadScope scope({.threads = threads});
      return prod(data, {.axis = Tuple{1}});
    };
    EXPECT_TRUE(same_bits(with_threads(3), with_threads(1))) << shape;
  }
}

TEST(Reduce, TakesAxesAsANumberAListOrATuple) {
  const NDArray data = counted({2, 3, 2});
  const NDArray expected = sum(data, {.axis = Tuple{0, 1}});
  EXPECT_EQ(expected.shape(), Shape({2}));
  EXPECT_TRUE(same_bits(sum(data, {.axis = {0, 1}}), expected));
  EXPECT_TRUE(same_bits(sum(data, {.axis = std::optional<Tuple>(Tuple{0, 1})}), expected));
  EXPECT_TRUE(same_bits(sum(data, {.axis = {1}}), sum(data, {.axis = 1})));
  EXPECT_TRUE(same_bits(sum(data, {.axis = {}}), sum(data, {.axis = std::nullopt})));
  const Sum listed{.axis = {0, 1}}, as_tuple{.axis = Tuple{0, 1}};
  EXPECT_TRUE(listed.axis == as_tuple.axis);
  EXPECT_TRUE(listed.axis == (Tuple{0, 1}));
  EXPECT_TRUE(Sum{}.axis == std::nullopt);
}

TEST(Reduce, GradientsAgreeWithFiniteDifferences) {
  const auto data = random_array({2, 3, 4}, 1, -1, 1, DType::float64);
  for (const Tuple& axes : {Tuple{}, Tuple{0}, Tuple{1}, Tuple{-1}, Tuple{0, 2}, Tuple{0, 1, 2}})
    for (bool keepdims : {false, true}) {
      EXPECT_TRUE(check_gradient(sum(x, {.axis = axes, .keepdims = keepdims}), {{"x", data}}));
      EXPECT_TRUE(check_gradient(mean(x, {.axis = axes, .keepdims = keepdims}), {{"x", data}}));
    }
}

TEST(Reduce, NamesAxesThatAreNotThere) {
  EXPECT_TRUE(fails_with([] { infer_shape(sum(x, {.axis = Tuple{2}}, "total"), {{"x", {2, 3}}}); }, "total", "2"));
  EXPECT_TRUE(fails_with([] { infer_shape(sum(x, {.axis = Tuple{0, 0}}, "total"), {{"x", {2, 3}}}); }, "once"));
}

TEST(Reduce, OfNothingIsZero) {
  EXPECT_EQ(sum(zeros({0, 3}), {.axis = Tuple{0}}).to_vector<int>(), (std::vector<int>{0, 0, 0}));
}

}  // namespace
}  // namespace symbind::testing
