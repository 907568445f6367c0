#include "symbind/ops/optimizer.h"

#include <cmath>

#include <gtest/gtest.h>

#include "symbind/exec/invoke.h"

#include "tests/support/arrays.h"

namespace symbind::testing {
namespace {

constexpr Tolerance close{.relative = 1e-6, .absolute = 1e-7};

TEST(Sgd, StepsAgainstTheGradient) {
  const auto weight = array({1, 2, 3}), grad = array({0.5, -1, 100});
  EXPECT_TRUE(all_close(
      sgd_update(weight, grad, {.lr = 0.1, .wd = 0.01, .rescale_grad = 0.5, .clip_gradient = 1}).to_vector<double>(),
      {0.999 - 0.025, 1.998 + 0.05, 2.997 - 0.1}, close));
  EXPECT_TRUE(all_close(sgd_update(weight, grad, {.lr = 0.1}).to_vector<double>(), {0.95, 2.1, -7}, close));
}

TEST(Sgd, NanIsNotClippedAway) {
  const auto next = sgd_update(array({1}), array({NAN}), {.lr = 0.1, .clip_gradient = 1});
  EXPECT_TRUE(std::isnan(next.item()));
}

TEST(Sgd, MomentumIsAStateAndTheWeightMayBeReplaced) {
  auto weight = array({1, 2}), momentum = array({0.1, 0.2});
  invoke(sgd_mom_update, {weight, array({0.5, 1}), momentum}, {.lr = 0.1, .momentum = 0.9, .wd = 0.01},
         {.out = {weight}});
  EXPECT_TRUE(all_close(momentum.to_vector<double>(), {0.09 - 0.001 - 0.05, 0.18 - 0.002 - 0.1}, close));
  EXPECT_TRUE(all_close(weight.to_vector<double>(), {1.039, 2.078}, close));
}

TEST(Sgd, AsksForALearningRateAndFloatingNumbers) {
  EXPECT_TRUE(fails_with([] { sgd_update(array({1}), array({1}), SgdUpdate{}); }, "lr"));
  const auto whole = array({1}, cpu(), DType::int32);
  EXPECT_TRUE(fails_with([&] { sgd_update(whole, whole, {.lr = 1}); }, "int32"));
}

}  // namespace
}  // namespace symbind::testing
