#include "symbind/ops/multi_adaptive_optimizer.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "symbind/exec/invoke.h"
#include "symbind/ops/adaptive_optimizer.h"

#include "tests/support/arrays.h"

namespace symbind::testing {
namespace {

constexpr Tolerance close{.relative = 1e-6, .absolute = 1e-7};

TEST(AdamWUpdate, ScalesTheGradientByAnArray) {
  for (const Context context : all_devices()) {
    SCOPED_TRACE(join(context));
    const auto weight = array({1, -2}, context), grad = array({0.5, 3}, context);
    const auto mean = array({0.1, 0}, context), var = array({0.5, 1}, context);
    const auto other_mean = mean.copy(), other_var = var.copy();
    const AdamWStep step{.lr = 0.1, .wd = 0.01, .eta = 0.5, .rescale_grad = 0.25, .clip_gradient = 0.5};
    const NDArray wanted = invoke(adamw_step, {weight, grad, other_mean, other_var}, step)[0];
    const NDArray found = invoke(adamw_update, {weight, grad, mean, var, array({0.25}, context)},
                                 {.lr = 0.1, .wd = 0.01, .eta = 0.5, .clip_gradient = 0.5})[0];
    EXPECT_TRUE(same_bits(found, wanted));
    EXPECT_TRUE(same_bits(mean, other_mean));
    EXPECT_TRUE(same_bits(var, other_var));
  }
}

TEST(AdamWUpdate, LeavesEverythingWhereTheScaleIsOfNoUse) {
  for (const Context context : all_devices())
    for (const double scale : {0.0, std::numeric_limits<double>::infinity(), std::nan("")}) {
      SCOPED_TRACE(join(context, " ", scale));
      const auto weight = array({1, -2}, context), mean = array({0.1, 0}, context), var = array({0.5, 1}, context);
      const auto outputs = invoke(multi_adamw_update,
                                  {weight, array({9, 9}, context), mean, var, weight, array({9, 9}, context), mean, var,
                                   array({scale}, context)},
                                  {.lrs = {1, 1}, .wds = {0.5, 0.5}, .etas = {1, 1}, .num_weights = 2});
      ASSERT_EQ(outputs.size(), 2u);
      for (const NDArray& each : outputs) EXPECT_EQ(each.to_vector<double>(), (std::vector<double>{1, -2}));
      EXPECT_TRUE(all_close(mean.to_vector<double>(), {0.1, 0}, close));
      EXPECT_EQ(var.to_vector<double>(), (std::vector<double>{0.5, 1}));
    }
}

// More than one piece of each sum: weights of 0.5 and gradients that are all alike give one step for all elements.
TEST(MultiLamb, TakesTheNormsOfLongWeights) {
  for (const Context context : all_devices()) {
    SCOPED_TRACE(join(context));
    const int64_t count = 50001;
    const NDArray weight = full({count}, 0.5, context), grad = full({count}, 2, context);
    const NDArray mean = full({count}, 0, context), var = full({count}, 0, context);
    const NDArray empty = full({0}, 0, context);
    // With bias correction the direction is 1 / (1 + epsilon) everywhere, so the step is 0.1 · 0.5.
    invoke(multi_lamb_update, {weight, grad, mean, var, empty, empty.copy(), empty.copy(), empty.copy()},
           {.learning_rates = {0.1, 1}, .wds = {0, 0}, .step_count = {1, 1}, .num_tensors = 2},
           {.out = {weight, empty}});
    for (const double value : weight.to_vector<double>()) ASSERT_NEAR(value, 0.45, 1e-6);
    EXPECT_NEAR(mean.to_vector<double>()[count - 1], 0.2, 1e-6);
  }
}

TEST(MultiLamb, CountsUpdatesForTheBiasCorrectionAlone) {
  for (const Context context : all_devices()) {
    SCOPED_TRACE(join(context));
    const auto updated = [&](int64_t count) {
      NDArray weight = full({3}, 0.5, context);
      invoke(multi_lamb_update, {weight, full({3}, 2, context), full({3}, 0, context), full({3}, 0, context)},
             {.learning_rates = {0.1}, .wds = {0}, .bias_correction = false, .step_count = {count}}, {.out = {weight}});
      return weight;
    };
    EXPECT_TRUE(same_bits(updated(0), updated(1)));
    EXPECT_TRUE(same_bits(updated(-2), updated(1)));
  }
}

TEST(MultiLamb, RequiresANumberForEachWeight) {
  const std::vector<NDArray> arrays{array({1}), array({1}), array({0}), array({0})};
  EXPECT_TRUE(fails_with(
      [&] {
        invoke(multi_lamb_update, arrays, {.learning_rates = {1}, .wds = {0}, .step_count = {1, 2}});
      },
      "step_count", "2 for 1"));
  EXPECT_TRUE(
      fails_with([&] { invoke(multi_lamb_update, arrays, {.learning_rates = {1}, .wds = {0}, .step_count = {0}}); },
                 "step_count", "1"));
  EXPECT_TRUE(
      fails_with([&] { invoke(multi_adamw_update, arrays, {.lrs = {1}, .wds = {0}, .etas = {1}}); }, "takes 5 arrays"));
}

}  // namespace
}  // namespace symbind::testing
