#include "symbind/ops/tile.h"

#include <gtest/gtest.h>

#include "symbind/exec/executor.h"
#include "symbind/exec/invoke.h"

#include "tests/support/arrays.h"

namespace symbind::testing {
namespace {

const auto x = Symbol::variable("x");

// Three times this is more than 64 bits hold with a sign; six times, wrapped around, is 2.
constexpr int64_t third = 3'074'457'345'618'258'603;

TEST(Tile, RefusesExtentsThatCannotBeCounted) {
  const int64_t quarter = (int64_t{1} << 62) + 1;
  EXPECT_TRUE(fails_with([&] { tile(ones({4, 3}), {.reps = {quarter, 1}}); }, "[tile]", "too long", "times 4"));
  EXPECT_TRUE(fails_with([&] { infer_shape(tile(x, {.reps = {1, quarter}}, "t"), {{"x", {4, 3}}}); }, "[tile t]"));
  EXPECT_THROW(tile(ones({4, 3}), {.reps = {int64_t{1} << 40, int64_t{1} << 40}}), Error) << "two long axes";
  EXPECT_THROW(tile(ones({4, 3}), {.reps = {int64_t{1} << 56, 1}}), Error) << "more memory than there is";
}

TEST(Repeat, RefusesExtentsThatCannotBeCounted) {
  EXPECT_TRUE(fails_with([] { repeat(ones({2, 3}), {.repeats = third}); }, "[repeat]", "too long", "6 times"));
  EXPECT_TRUE(fails_with([] { repeat(ones({2, 3}), {.repeats = third, .axis = 1}); }, "[repeat]", "3 times"));
  EXPECT_THROW(repeat(ones({2, 3}), {.repeats = int64_t{1} << 56}), Error) << "more memory than there is";
}

}  // namespace
}  // namespace symbind::testing
