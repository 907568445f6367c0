#include "symbind/ops/scalar.h"

#include <gtest/gtest.h>

#include "symbind/exec/executor.h"
#include "symbind/exec/invoke.h"

#include "tests/support/arrays.h"
#include "tests/support/gradient_check.h"

namespace symbind::testing {
namespace {

const auto x = Symbol::variable("x");

TEST(Scalar, ComputesWithTheNumberOnEitherSide) {
  const auto a = array({1, 2, 4});
  EXPECT_EQ(rminus_scalar(a, {.scalar = 1}).to_vector<float>(), (std::vector<float>{0, -1, -3}));
  EXPECT_EQ(rdiv_scalar(a, {.scalar = 1}).to_vector<float>(), (std::vector<float>{1, 0.5, 0.25}));
  EXPECT_EQ(rpower_scalar(a, {.scalar = 2}).to_vector<float>(), (std::vector<float>{2, 4, 16}));
  EXPECT_EQ(power_scalar(a, {.scalar = 2}).to_vector<float>(), (std::vector<float>{1, 4, 16}));
  EXPECT_EQ(power_scalar(a, {.scalar = 0.5}).to_vector<float>(), (std::vector<float>{1, 1.41421356f, 2}));
  EXPECT_EQ(lesser_scalar(a, {.scalar = 2}).to_vector<float>(), (std::vector<float>{1, 0, 0}));
}

TEST(Scalar, WholeNumbersStayWholeUnlessTheScalarIsAFraction) {
  const auto a = array({1, 2, 3}, cpu(), DType::int32);
  const auto cut = plus_scalar(a, {.scalar = 2.5});
  EXPECT_EQ(cut.dtype(), DType::int32);
  EXPECT_EQ(cut.to_vector<double>(), (std::vector<double>{3, 4, 5}));
  const auto fractions = plus_scalar(a, {.scalar = 2.5, .is_int = false});
  EXPECT_EQ(fractions.dtype(), DType::float64);
  EXPECT_EQ(fractions.to_vector<double>(), (std::vector<double>{3.5, 4.5, 5.5}));
  const auto truths = mul_scalar(array({0, 1}, cpu(), DType::boolean), {.scalar = 3});
  EXPECT_EQ(truths.dtype(), DType::int64);
  EXPECT_EQ(truths.to_vector<int>(), (std::vector<int>{0, 3}));
}

TEST(Scalar, GradientsAgreeWithFiniteDifferences) {
  const auto positive = random_array({3, 4}, 1, 0.5, 2, DType::float64);
  for (const auto& f :
       {plus_scalar(x, {.scalar = 2}), minus_scalar(x, {.scalar = 2}), rminus_scalar(x, {.scalar = 2}),
        mul_scalar(x, {.scalar = -3}), div_scalar(x, {.scalar = 4}), rdiv_scalar(x, {.scalar = 3}),
        power_scalar(x, {.scalar = 2}), power_scalar(x, {.scalar = -1.5}), rpower_scalar(x, {.scalar = 2.5})})
    EXPECT_TRUE(check_gradient(f, {{"x", positive}}));
}

TEST(Scalar, ReadsItsNumberFromText) {
  EXPECT_EQ(invoke("_mul_scalar", {array({1, 2})}, {{"scalar", "-1.5"}})[0].to_vector<float>(),
            (std::vector<float>{-1.5, -3}));
  EXPECT_TRUE(fails_with([] { invoke("_mul_scalar", {array({1})}, {{"scalar", "two"}}); }, "scalar", "two"));
}

}  // namespace
}  // namespace symbind::testing
