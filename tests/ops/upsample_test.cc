#include "symbind/ops/upsample.h"

#include <gtest/gtest.h>

#include "symbind/exec/executor.h"
#include "symbind/exec/invoke.h"

#include "tests/support/arrays.h"

namespace symbind::testing {
namespace {

TEST(UpSampling, RefusesExtentsThatCannotBeCounted) {
  const auto x = Symbol::variable("x"), y = Symbol::variable("y");
  const UpSampling larger{.scale = 1 << 20, .sample_type = "nearest", .num_args = 1};
  const int64_t rows = int64_t{1} << 44;
  EXPECT_TRUE(fails_with(
      [&] {
        infer_shape(up_sampling({x}, larger, "up"), {{"x", {1, 1, rows, 1}}});
      },
      "[UpSampling up]", "too long", "times 1048576"));
  EXPECT_TRUE(fails_with([&] { invoke(up_sampling, {zeros({0, 1, 1, rows})}, larger); }, "[UpSampling]", "too long"));
  const UpSampling joined{.scale = 1, .sample_type = "nearest", .num_args = 2};
  const Shape channels{1, int64_t{1} << 62, 1, 1};
  EXPECT_TRUE(fails_with(
      [&] {
        infer_shape(up_sampling({x, y}, joined, "up"), {{"x", channels}, {"y", channels}});
      },
      "[UpSampling up]", "too long"));
  EXPECT_THROW(invoke(up_sampling, {ones({1, 1, 8, 8})}, larger), Error) << "more memory than there is";
}

}  // namespace
}  // namespace symbind::testing
