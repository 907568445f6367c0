#include "symbind/exec/random.h"

#include <gtest/gtest.h>

#include "tests/support/arrays.h"

namespace symbind::testing {
namespace {

TEST(RandomArrays, AreThoseOfTheOperators) {
  for (const Context context : all_devices()) {
    seed(3);
    const NDArray uniform = random::uniform({.low = -1, .high = 1, .shape = {100, 2}}, context);
    const NDArray normal = random::normal({.scale = 2, .shape = {5}, .dtype = DType::float64}, context);
    const NDArray whole = random::randint({.low = 3, .high = 9, .shape = {7}}, context);
    seed(3);
    EXPECT_TRUE(same_bits(
        uniform, invoke(random_uniform, {}, {.low = -1, .high = 1, .shape = {100, 2}}, {.context = context})[0]));
    EXPECT_TRUE(same_bits(normal, invoke(random_normal, {}, {.scale = 2, .shape = {5}, .dtype = DType::float64},
                                         {.context = context})[0]));
    EXPECT_TRUE(
        same_bits(whole, invoke(random_randint, {}, {.low = 3, .high = 9, .shape = {7}}, {.context = context})[0]));
    EXPECT_EQ(uniform.context(), context);
    EXPECT_EQ(whole.dtype(), DType::int32);
  }
}

TEST(RandomArrays, OfEveryDistributionHaveTheirShape) {
  const Shape shape{4, 3};
  const Tuple dims{4, 3};
  EXPECT_EQ(random::exponential({.shape = dims}).shape(), shape);
  EXPECT_EQ(random::gamma({.shape = dims}).shape(), shape);
  EXPECT_EQ(random::poisson({.shape = dims}).shape(), shape);
  EXPECT_EQ(random::negative_binomial({.k = 2, .p = 0.5, .shape = dims}).shape(), shape);
  EXPECT_EQ(random::generalized_negative_binomial({.shape = dims}).shape(), shape);
}

TEST(RandomArrays, CheckTheirParameters) {
  EXPECT_TRUE(fails_with([] { random::normal({.scale = -1, .shape = {2}}); }, "scale", "-1"));
}

}  // namespace
}  // namespace symbind::testing
