#include "symbind/ops/cast.h"

#include <gtest/gtest.h>

#include "symbind/exec/executor.h"
#include "symbind/exec/invoke.h"
#include "symbind/ops/elementwise.h"

#include "tests/support/arrays.h"
#include "tests/support/gradient_check.h"

namespace symbind::testing {
namespace {

TEST(Cast, CutsOffFractions) {
  const auto values = array({1.9, -1.9, 300, 0});
  EXPECT_EQ(cast(values, {.dtype = DType::int32}).to_vector<int>(), (std::vector<int>{1, -1, 300, 0}));
  EXPECT_EQ(cast(values, {.dtype = DType::uint8}).to_vector<int>(), (std::vector<int>{1, 255, 44, 0}));
  EXPECT_EQ(cast(values, {.dtype = DType::boolean}).to_vector<int>(), (std::vector<int>{1, 1, 1, 0}));
}

TEST(Cast, GradientAgreesWithFiniteDifferences) {
  const auto x = Symbol::variable("x");
  EXPECT_TRUE(check_gradient(square(cast(x, {.dtype = DType::float64})),
                             {{"x", random_array({2, 3, 4}, 1, -1, 1, DType::float64)}}));
}

}  // namespace
}  // namespace symbind::testing
