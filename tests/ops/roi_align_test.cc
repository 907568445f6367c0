#include "symbind/ops/roi_align.h"

#include <limits>

#include <gtest/gtest.h>

#include "symbind/exec/executor.h"
#include "symbind/exec/invoke.h"

#include "tests/support/arrays.h"

namespace symbind::testing {
namespace {

const double nan = std::numeric_limits<double>::quiet_NaN(), far = 1e30;

// Nothing is read outside of the images, and no time is spent there, whatever a network proposes.
TEST(ROIAlign, GivesZerosForRegionsThatAreNowhere) {
  const NDArray rois = array(std::vector<double>{-1,  0,   0,   2,   2,    //
                                                 2,   0,   0,   2,   2,    //
                                                 nan, 0,   0,   2,   2,    //
                                                 1,   far, far, far, far,  //
                                                 1,   nan, nan, nan, nan},
                             {5, 5});
  for (const bool aligned : {false, true})
    for (const double value : invoke(roi_align, {ones({2, 1, 3, 3}), rois},
                                     {.pooled_size = {2, 2}, .spatial_scale = 1, .aligned = aligned})[0]
                                  .to_vector<double>())
      EXPECT_EQ(value, 0);
}

TEST(ROIAlign, TakesRegionsFarLargerThanTheImage) {
  const NDArray rois = array(std::vector<double>{0, -far, -far, far, far, 0, -1e6, -1e6, 1e6, 1e6}, {2, 5});
  const auto found =
      invoke(roi_align, {ones({1, 1, 3, 3}), rois}, {.pooled_size = {1, 1}, .spatial_scale = 1})[0].to_vector<double>();
  for (const double value : found) EXPECT_NEAR(value, 0, 1e-6);
}

TEST(RROIAlign, GivesZerosForRegionsThatAreNowhere) {
  const NDArray rois = array(std::vector<double>{-1, 1,   1,   2,   2,   0,   //
                                                 7,  1,   1,   2,   2,   0,   //
                                                 0,  far, far, 2,   2,   45,  //
                                                 0,  nan, 1,   2,   2,   10,  //
                                                 0,  1,   1,   far, far, 30},
                             {5, 6});
  const auto found = invoke(rroi_align, {ones({2, 1, 3, 3}), rois}, {.pooled_size = {1, 2}, .spatial_scale = 1})[0]
                         .to_vector<double>();
  for (const double value : found) EXPECT_NEAR(value, 0, 1e-6);
}

TEST(ROIAlign, InfersChannelsOfPositionSensitiveRegionsInBothDirections) {
  const auto net = roi_align({Symbol::variable("x"), Symbol::variable("r")},
                             {.pooled_size = {2, 3}, .spatial_scale = 1, .position_sensitive = true}, "align");
  EXPECT_EQ(infer_shape(net, {{"x", {1, 12, 4, 4}}, {"r", {5, 5}}}).outputs[0], (std::vector<int64_t>{5, 2, 2, 3}));
  EXPECT_TRUE(fails_with(
      [&] {
        infer_shape(net, {{"x", {1, 13, 4, 4}}, {"r", {5, 5}}});
      },
      "[_contrib_ROIAlign align]", "6 cells", "(1,13,4,4)"));
  EXPECT_TRUE(fails_with([] { roi_align(Symbol::variable("x"), {.pooled_size = {2}, .spatial_scale = 1}); },
                         "pooled_size", "(2,)"));
}

}  // namespace
}  // namespace symbind::testing
