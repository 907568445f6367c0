#include "symbind/ops/rearrange.h"

#include <gtest/gtest.h>

#include "symbind/exec/executor.h"
#include "symbind/exec/invoke.h"

#include "tests/support/arrays.h"

namespace symbind::testing {
namespace {

const auto x = Symbol::variable("x");

TEST(Blocks, OfMoreThanCanBeCountedAreRefused) {
  constexpr int64_t block = 1 << 15, many = int64_t{1} << 49;
  EXPECT_TRUE(fails_with(
      [] {
        infer_shape(depth_to_space(x, {.block_size = block}, "d"), {{"x", {1, block * block, many, 1}}});
      },
      "[depth_to_space d]", "too long", "times 32768"));
  EXPECT_TRUE(fails_with(
      [] {
        infer_shape(space_to_depth(x, {.block_size = block}, "s"), {{"x", {1, many, block, block}}});
      },
      "[space_to_depth s]", "too long", "times 1073741824"));
  EXPECT_TRUE(fails_with([] { depth_to_space(zeros({1, 0, 1, many}), {.block_size = block}); }, "[depth_to_space]"));
}

TEST(Reverse, CountsAxesFromEitherEnd) {
  const auto data = counted({2, 3});
  EXPECT_EQ(reverse(data, {.axis = {-1}}).to_vector<int>(), (std::vector<int>{3, 2, 1, 6, 5, 4}));
  EXPECT_EQ(reverse(data, {.axis = {-2, 1}}).to_vector<int>(), (std::vector<int>{6, 5, 4, 3, 2, 1}));
}

TEST(Reverse, TakesAxesOneAfterTheOther) {
  EXPECT_EQ(reverse(counted({2, 3}), {.axis = {0, 0}}).to_vector<double>(), counted({2, 3}).to_vector<double>());
  EXPECT_EQ(reverse(counted({2, 3}), {.axis = {1, 0, -1}}).to_vector<double>(),
            reverse(counted({2, 3}), {.axis = {0}}).to_vector<double>());
  EXPECT_TRUE(fails_with(
      [] {
        infer_shape(reverse(x, {.axis = {2}}, "r"), {{"x", {2, 3}}});
      },
      "[reverse r]", "2", "(2,3)"));
}

}  // namespace
}  // namespace symbind::testing
