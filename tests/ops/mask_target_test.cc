#include "symbind/ops/mask_target.h"

#include <limits>

#include <gtest/gtest.h>

#include "symbind/exec/executor.h"
#include "symbind/exec/invoke.h"
#include "symbind/ops/roi_align.h"

#include "tests/support/arrays.h"

namespace symbind::testing {
namespace {

// The region [1, 3) × [0, 2) of a mask whose lower half is 1, at 2 × 2: with one point in the middle of each cell.
TEST(MaskTarget, CutsTheMaskOfEachRegionOutForEveryClass) {
  for (const Context context : all_devices()) {
    SCOPED_TRACE(join(context));
    const NDArray rois = array(std::vector<double>{0, 1, 2, 3, 0, 0, 4, 4}, {1, 2, 4}, context);
    const NDArray masks = array(std::vector<double>{0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1,  //
                                                    1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1},
                                {1, 2, 4, 4}, context);
    const auto outputs = invoke(mask_target,
                                {rois, masks, array(std::vector<double>{0, 1}, {1, 2}, context),
                                 array(std::vector<double>{2, -1}, {1, 2}, context)},
                                {.num_rois = 2, .num_classes = 3, .mask_size = {2, 2}, .sample_ratio = 1});
    ASSERT_EQ(outputs.size(), 2u);
    ASSERT_EQ(outputs[0].shape(), (Shape{1, 2, 3, 2, 2}));
    const auto targets = outputs[0].to_vector<double>(), weights = outputs[1].to_vector<double>();
    for (size_t i = 0; i < 12; ++i) {
      EXPECT_EQ(targets[i], i % 4 < 2 ? 0.5 : 1) << "rows 1.5 and 2.5, " << i;
      EXPECT_EQ(targets[12 + i], 1) << "the other mask, " << i;
      EXPECT_EQ(weights[i], i / 4 == 2 ? 1 : 0) << i;
      EXPECT_EQ(weights[12 + i], 0) << "no class, " << i;
    }
  }
}

TEST(MaskTarget, IsROIAlignOfTheMatchingMask) {
  const NDArray rois = array(std::vector<double>{0.5, 0.25, 4.5, 3, -1, -1, 2.5, 7}, {1, 2, 4});
  std::vector<double> pixels;
  for (int i = 0; i < 2 * 5 * 6; ++i) pixels.push_back(i % 7 * 0.25);
  const NDArray masks = array(pixels, {1, 2, 5, 6});
  for (const bool aligned : {false, true}) {
    const NDArray found = invoke(
        mask_target, {rois, masks, array(std::vector<double>{1, 0}, {1, 2}), array(std::vector<double>{0, 0}, {1, 2})},
        {.num_rois = 2,
         .num_classes = 1,
         .mask_size = {3, 2},
         .sample_ratio = aligned ? 2 : -1,
         .aligned = aligned})[0];
    const NDArray regions = array(std::vector<double>{1, 0.5, 0.25, 4.5, 3, 0, -1, -1, 2.5, 7}, {2, 5});
    const NDArray wanted =
        invoke(roi_align, {masks.reshape({2, 1, 5, 6}), regions},
               {.pooled_size = {3, 2}, .spatial_scale = 1, .sample_ratio = aligned ? 2 : -1, .aligned = aligned})[0];
    EXPECT_TRUE(all_close(found.to_vector<double>(), wanted.to_vector<double>(), {.relative = 1e-5, .absolute = 1e-6}));
  }
}

// Nothing is read outside of the masks, whatever is asked for.
TEST(MaskTarget, GivesZerosWhereThereIsNoMask) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const NDArray rois = array(std::vector<double>{0, 0, 2, 2, 0, 0, 2, 2, 0, 0, 2, 2, nan, nan, nan, nan}, {1, 4, 4});
  const auto outputs = invoke(mask_target,
                              {rois, ones({1, 1, 3, 3}), array(std::vector<double>{-1, 1, nan, 0}, {1, 4}),
                               array(std::vector<double>{5, -1, nan, 2}, {1, 4})},
                              {.num_rois = 4, .num_classes = 2, .mask_size = {2, 2}});
  for (const NDArray& each : outputs)
    for (const double value : each.to_vector<double>()) EXPECT_EQ(value, 0);
}

TEST(MaskTarget, SaysWhichShapesDisagree) {
  const Symbol net =
      mask_target({Symbol::variable("r"), Symbol::variable("m"), Symbol::variable("i"), Symbol::variable("c")},
                  {.num_rois = 2, .num_classes = 3, .mask_size = {14, 7}}, "target")[0];
  EXPECT_EQ(infer_shape(net, {{"r", {5, 2, 4}}, {"m", {5, 9, 8, 8}}}).outputs[0],
            (std::vector<int64_t>{5, 2, 3, 14, 7}));
  EXPECT_TRUE(fails_with(
      [&] {
        infer_shape(net, {{"r", {5, 3, 4}}});
      },
      "[_contrib_mrcnn_mask_target target]", "rois", "(5,3,4)"));
}

}  // namespace
}  // namespace symbind::testing
