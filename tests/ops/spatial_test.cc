#include "symbind/ops/spatial.h"

#include <limits>

#include <gtest/gtest.h>

#include "symbind/exec/executor.h"
#include "symbind/exec/invoke.h"

#include "tests/support/arrays.h"

namespace symbind::testing {
namespace {

TEST(BilinearSampler, GivesZerosFarOutsideAndAtNaN) {
  const double nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
  const NDArray grid = array(std::vector<double>{nan, inf, -1e30, 0, 0, 0}, {1, 2, 1, 3});
  for (const double value : invoke(bilinear_sampler, {ones({1, 1, 3, 3}), grid})[0].to_vector<double>())
    EXPECT_EQ(value, 0);
}

TEST(SpatialTransformer, IsAGridAndASampler) {
  const NDArray data = random_array({2, 3, 5, 4}, 1), loc = random_array({2, 6}, 2);
  const NDArray grid = invoke(grid_generator, {loc}, {.transform_type = "affine", .target_shape = {3, 6}})[0];
  const NDArray apart = invoke(bilinear_sampler, {data, grid})[0];
  const NDArray together = invoke(spatial_transformer, {data, loc},
                                  {.target_shape = {3, 6}, .transform_type = "affine", .sampler_type = "bilinear"})[0];
  EXPECT_TRUE(same_bits(together, apart));
}

// A step between the first and the last would be infinite.
TEST(GridGenerator, RefusesAxesOfOneElement) {
  EXPECT_TRUE(fails_with(
      [] {
        grid_generator(Symbol::variable("x"), {.transform_type = "affine", .target_shape = {1, 4}});
      },
      "target_shape", "(1, 4)"));
  const auto warp = grid_generator(Symbol::variable("x"), {.transform_type = "warp"}, "warp");
  EXPECT_TRUE(fails_with([&] { infer_shape(warp, {{"x", {1, 2, 3, 1}}}); }, "[GridGenerator warp]", "(1,2,3,1)"));
}

}  // namespace
}  // namespace symbind::testing
