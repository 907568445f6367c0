#include "symbind/ops/spatial.h"

#include <limits>

#include <gtest/gtest.h>

#include "symbind/exec/arithmetic.h"
#include "symbind/exec/executor.h"
#include "symbind/exec/invoke.h"
#include "symbind/ops/slice.h"

#include "tests/support/arrays.h"

namespace symbind::testing {
namespace {

TEST(BilinearSampler, GivesZerosFarOutsideAndAtNaN) {
  const double nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
  const NDArray grid = array(std::vector<double>{nan, inf, -1e30, 0, 0, 0}, {1, 2, 1, 3});
  for (const double value : invoke(bilinear_sampler, {ones({1, 1, 3, 3}), grid})[0].to_vector<double>())
    EXPECT_EQ(value, 0);
}

TEST(BilinearSampler, ReadsManyChannelsAsItReadsOne) {
  const NDArray data = random_array({2, 19, 5, 7}, 1), grid = random_array({2, 2, 20, 17}, 2, -1.3, 1.3);
  const NDArray all = invoke(bilinear_sampler, {data, grid})[0];
  for (int64_t channel = 0; channel < 19; ++channel) {
    const SliceAxis one{.axis = 1, .begin = channel, .end = channel + 1};
    const NDArray alone = invoke(bilinear_sampler, {invoke(slice_axis, {data}, one)[0], grid})[0];
    EXPECT_TRUE(all_close(invoke(slice_axis, {all}, one)[0], alone));
  }
}

TEST(BilinearSampler, ManyChannelsHaveTheGradientsOfEach) {
  const auto gradients = [](const NDArray& data, const NDArray& grid, const NDArray& out_grad) {
    auto executor = simple_bind(bilinear_sampler(Symbol::variable("data"), Symbol::variable("grid")), cpu(),
                                {{"data", data.shape()}, {"grid", grid.shape()}});
    executor->forward(true, {{"data", data}, {"grid", grid}});
    executor->backward({out_grad});
    return executor->grad_dict();
  };
  const NDArray data = random_array({2, 19, 5, 7}, 1), grid = random_array({2, 2, 20, 17}, 2, -1.3, 1.3);
  const NDArray out_grad = random_array({2, 19, 20, 17}, 3);
  const auto all = gradients(data, grid, out_grad);
  NDArray grid_sum = zeros(grid.shape());
  for (int64_t channel = 0; channel < 19; ++channel) {
    const SliceAxis one{.axis = 1, .begin = channel, .end = channel + 1};
    const auto of_one = [&](const NDArray& array) { return invoke(slice_axis, {array}, one)[0]; };
    const auto alone = gradients(of_one(data), grid, of_one(out_grad));
    EXPECT_TRUE(all_close(of_one(all.at("data")), alone.at("data"), {1e-5, 1e-5}));
    grid_sum = grid_sum + alone.at("grid");
  }
  EXPECT_TRUE(all_close(all.at("grid"), grid_sum, {1e-4, 1e-4}));
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
