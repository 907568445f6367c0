#include "symbind/ops/psroi_pool.h"

#include <limits>

#include <gtest/gtest.h>

#include "symbind/exec/executor.h"
#include "symbind/exec/invoke.h"

#include "tests/support/arrays.h"

namespace symbind::testing {
namespace {

NDArray strange_regions() {
  const double nan = std::numeric_limits<double>::quiet_NaN(), far = 1e30;
  return array(std::vector<double>{-1, 0, 0, 2, 2, 2, 0, 0, 2, 2, nan, 0, 0, 2, 2, 1, far, far, far, far}, {4, 5});
}

// Nothing is read outside of the images, whatever a network proposes.
TEST(PSROIPooling, GivesZerosForRegionsThatAreNowhere) {
  const NDArray data = ones({2, 4, 3, 3});
  const PSROIPooling params{.spatial_scale = 1, .output_dim = 1, .pooled_size = 2};
  for (const double value : invoke(psroi_pooling, {data, strange_regions()}, params)[0].to_vector<double>())
    EXPECT_EQ(value, 0);
}

TEST(DeformablePSROIPooling, GivesZerosForRegionsThatAreNowhere) {
  const DeformablePSROIPooling params{
      .spatial_scale = 1, .output_dim = 1, .group_size = 2, .pooled_size = 2, .sample_per_part = 2, .trans_std = 0.5};
  const NDArray data = ones({2, 4, 3, 3}), trans = full({4, 2, 2, 2}, 1e30);
  for (const double value :
       invoke(deformable_psroi_pooling, {data, strange_regions(), trans}, params)[0].to_vector<double>())
    EXPECT_EQ(value, 0);
}

TEST(PSROIPooling, SaysWhatIsWrong) {
  const auto net = psroi_pooling({Symbol::variable("x"), Symbol::variable("r")},
                                 {.spatial_scale = 1, .output_dim = 2, .pooled_size = 3}, "pool");
  EXPECT_TRUE(fails_with(
      [&] {
        infer_shape(net, {{"x", {1, 17, 4, 4}}, {"r", {3, 5}}});
      },
      "[_contrib_PSROIPooling pool]", "18", "(1,17,4,4)"));
  EXPECT_TRUE(fails_with([&] { infer_shape(net, {{"x", {1, 18, 4, 4}}, {"r", {3, 4}}}); }, "rois", "(3,4)"));
}

TEST(DeformablePSROIPooling, SaysWhichOffsetsItNeeds) {
  const auto net =
      deformable_psroi_pooling({Symbol::variable("x"), Symbol::variable("r"), Symbol::variable("t")},
                               {.spatial_scale = 1, .output_dim = 4, .group_size = 1, .pooled_size = 2}, "pool");
  const auto with = [&](const Shape& trans) {
    return [&net, trans] { infer_shape(net, {{"x", {1, 4, 4, 4}}, {"r", {3, 5}}, {"t", trans}}); };
  };
  EXPECT_EQ(error_of(with({3, 4, 2, 2})), "");
  EXPECT_TRUE(fails_with(with({3, 6, 2, 2}), "trans", "multiple"));
  EXPECT_TRUE(fails_with(with({2, 2, 2, 2}), "trans"));
  EXPECT_TRUE(fails_with(with({3, 2, 3, 3}), "trans"));
}

}  // namespace
}  // namespace symbind::testing
