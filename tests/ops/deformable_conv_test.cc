#include "symbind/ops/deformable_conv.h"

#include <limits>

#include <gtest/gtest.h>

#include "symbind/exec/executor.h"
#include "symbind/exec/invoke.h"
#include "symbind/ops/conv.h"

#include "tests/support/arrays.h"

namespace symbind::testing {
namespace {

TEST(DeformableConvolution, IsAConvolutionWithoutOffsets) {
  const NDArray data = random_array({2, 4, 6, 5}, 1), weight = random_array({6, 2, 3, 2}, 2),
                bias = random_array({6}, 3);
  const NDArray expected = invoke(convolution, {data, weight, bias},
                                  {.kernel = {3, 2}, .stride = {2, 1}, .num_filter = 6, .num_group = 2})[0];
  const DeformableConvolution params{.kernel = {3, 2}, .stride = {2, 1}, .num_filter = 6, .num_group = 2};
  const NDArray offset = zeros({2, 12, 2, 4}), mask = ones({2, 6, 2, 4});
  EXPECT_TRUE(
      all_close(invoke(deformable_convolution, {data, offset, weight, bias}, params)[0], expected, {1e-5, 1e-5, 1e-6}));
  EXPECT_TRUE(all_close(invoke(modulated_deformable_convolution, {data, offset, mask, weight, bias}, {params})[0],
                        expected, {1e-5, 1e-5, 1e-6}));
}

TEST(DeformableConvolution, ReadsNothingOutsideOfTheImage) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const DeformableConvolution params{.kernel = {1, 1}, .num_filter = 1, .no_bias = true};
  // What is outside is 0 even beside an infinity.
  const NDArray data = full({1, 1, 3, 3}, std::numeric_limits<double>::infinity());
  for (const double offset : {1e30, -1e30, nan}) {
    const NDArray result =
        invoke(deformable_convolution, {data, full({1, 2, 3, 3}, offset), ones({1, 1, 1, 1})}, params)[0];
    for (const double value : result.to_vector<double>()) EXPECT_EQ(value, 0) << offset;
  }
}

TEST(DeformableConvolution, InfersOffsetsMaskAndWeight) {
  const auto net = modulated_deformable_convolution(
      Symbol::variable("x"), {{.kernel = {3, 3}, .pad = {1, 1}, .num_filter = 8, .num_deformable_group = 2}}, "conv");
  const auto shapes = infer_shape(net, {{"x", {2, 4, 7, 5}}});
  EXPECT_EQ(shapes.args,
            (std::vector<std::vector<int64_t>>{{2, 4, 7, 5}, {2, 36, 7, 5}, {2, 18, 7, 5}, {8, 4, 3, 3}, {8}}));
}

TEST(DeformableConvolution, SaysWhatIsWrong) {
  const auto net = deformable_convolution(Symbol::variable("x"), {.kernel = {3, 3}, .num_filter = 8}, "conv");
  EXPECT_TRUE(fails_with(
      [&] {
        infer_shape(net, {{"x", {1, 2, 2, 5}}});
      },
      "[_contrib_DeformableConvolution conv]", "does not fit", "(1,2,2,5)"));
  EXPECT_TRUE(fails_with([&] { infer_shape(net, {{"x", {1, 2, 5, 5}}, {"conv_offset", {1, 17, 3, 3}}}); }, "offset"));
  EXPECT_TRUE(
      fails_with([] { deformable_convolution(Symbol::variable("x"), {.kernel = {3}, .num_filter = 1}); }, "kernel"));
  EXPECT_TRUE(fails_with(
      [] {
        deformable_convolution(Symbol::variable("x"), {.kernel = {3, 3}, .num_filter = 3, .num_group = 2});
      },
      "num_filter", "num_group"));
}

}  // namespace
}  // namespace symbind::testing
