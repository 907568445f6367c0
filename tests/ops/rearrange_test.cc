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

TEST(Reverse, TakesEachAxisOnce) {
  EXPECT_TRUE(fails_with([] { reverse(counted({2, 3}), {.axis = {0, 0}}); }, "[reverse]", "once", "(0, 0)"));
  EXPECT_TRUE(fails_with(
      [] {
        infer_shape(reverse(x, {.axis = {1, -1}}, "r"), {{"x", {2, 3}}});
      },
      "[reverse r]", "once", "(1, -1)"));
}

}  // namespace
}  // namespace symbind::testing
