#include "symbind/ops/roi_pool.h"

#include <limits>

#include <gtest/gtest.h>

#include "symbind/exec/executor.h"
#include "symbind/exec/invoke.h"

#include "tests/support/arrays.h"

namespace symbind::testing {
namespace {

// Nothing is read outside of the images, whatever a network proposes.
TEST(ROIPooling, GivesZerosForRegionsThatAreNowhere) {
  const double nan = std::numeric_limits<double>::quiet_NaN(), far = 1e30;
  const NDArray data = ones({2, 1, 3, 3});
  const NDArray rois =
      array(std::vector<double>{-1, 0, 0, 2, 2, 2, 0, 0, 2, 2, nan, 0, 0, 2, 2, 1, far, far, far, far}, {4, 5});
  const NDArray pooled = invoke(roi_pooling, {data, rois}, {.pooled_size = {2, 2}, .spatial_scale = 1})[0];
  for (const double value : pooled.to_vector<double>()) EXPECT_EQ(value, 0);
  const NDArray whole = array(std::vector<double>{1, -far, -far, far, far}, {1, 5});
  for (const double value :
       invoke(roi_pooling, {data, whole}, {.pooled_size = {1, 1}, .spatial_scale = 1})[0].to_vector<double>())
    EXPECT_EQ(value, 1);
}

TEST(ROIPooling, SaysWhichShapeIsWrong) {
  const auto net =
      roi_pooling({Symbol::variable("x"), Symbol::variable("r")}, {.pooled_size = {2, 2}, .spatial_scale = 1}, "pool");
  EXPECT_TRUE(fails_with(
      [&] {
        infer_shape(net, {{"x", {1, 1, 4, 4}}, {"r", {3, 4}}});
      },
      "[ROIPooling pool]", "rois", "(3,4)"));
  EXPECT_TRUE(fails_with([&] { infer_shape(net, {{"x", {1, 1, 1 << 16, 1 << 16}}, {"r", {3, 5}}}); }, "too large"));
  EXPECT_TRUE(fails_with([] { roi_pooling(Symbol::variable("x"), {.pooled_size = {2}, .spatial_scale = 1}); },
                         "pooled_size", "(2,)"));
}

}  // namespace
}  // namespace symbind::testing
