#include "symbind/ops/deconv.h"

#include <gtest/gtest.h>

#include "symbind/exec/executor.h"

#include "tests/support/arrays.h"

namespace symbind::testing {
namespace {

TEST(Deconvolution, RefusesExtentsThatCannotBeCounted) {
  const auto x = Symbol::variable("x"), w = Symbol::variable("w");
  const auto net = deconvolution({x, w}, {.kernel = {1}, .stride = {4}, .num_filter = 1, .no_bias = true}, "up");
  EXPECT_TRUE(fails_with(
      [&] {
        infer_shape(net, {{"x", {1, 1, (int64_t{1} << 62) + 2}}});
      },
      "[Deconvolution up]", "too long", "times 4"));
}

}  // namespace
}  // namespace symbind::testing
