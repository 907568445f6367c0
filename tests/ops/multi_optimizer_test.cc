#include "symbind/ops/multi_optimizer.h"

#include <gtest/gtest.h>

#include "symbind/exec/invoke.h"
#include "symbind/ops/optimizer.h"

#include "tests/support/arrays.h"

namespace symbind::testing {
namespace {

constexpr Tolerance close{.relative = 1e-6, .absolute = 1e-7};

TEST(MultiSgd, TakesWeightGradientAndMomentumArrayByArray) {
  for (const Context context : all_devices()) {
    SCOPED_TRACE(join(context));
    const auto weight = array({1, 2}, context), other = array({3}, context);
    const auto momentum = array({0.1, 0.2}, context), other_momentum = array({0.5}, context);
    const uint64_t version = momentum.storage().version();
    invoke(multi_sgd_mom_update,
           {weight, array({0.5, 1}, context), momentum, other, array({2}, context), other_momentum},
           {.lrs = {0.1, 1}, .wds = {0.01, 0}, .momentum = 0.9, .num_weights = 2}, {.out = {weight, other}});
    EXPECT_TRUE(all_close(momentum.to_vector<double>(), {0.09 - 0.001 - 0.05, 0.18 - 0.002 - 0.1}, close));
    EXPECT_TRUE(all_close(weight.to_vector<double>(), {1.039, 2.078}, close));
    EXPECT_TRUE(all_close(other_momentum.to_vector<double>(), {0.45 - 2}, close));
    EXPECT_TRUE(all_close(other.to_vector<double>(), {3 + 0.45 - 2}, close));
    EXPECT_GT(momentum.storage().version(), version) << "a write is seen by whoever caches";
  }
}

TEST(MultiSgd, ByNameWithTextAttributes) {
  const auto results = invoke("multi_sgd_update", {array({1}), array({1}), array({2}), array({1})},
                              {{"lrs", "(0.5, 0.25)"}, {"wds", "(0, 0)"}, {"num_weights", "2"}});
  ASSERT_EQ(results.size(), 2u);
  EXPECT_EQ(results[0].item(), 0.5);
  EXPECT_EQ(results[1].item(), 1.75);
}

TEST(MultiSgd, UpdatesTheFloatCopyOfHalfWeights) {
  const auto weight = array({1, 2}, cpu(), DType::float16), grad = array({0.5, 1}, cpu(), DType::float16);
  const auto master = array({1.0001, 2.0001}), momentum = array({0, 0});
  invoke(multi_mp_sgd_mom_update, {weight, grad, momentum, master}, {{.lrs = {0.1}, .wds = {0}, .momentum = 0.9}},
         {.out = {weight}});
  EXPECT_TRUE(all_close(master.to_vector<double>(), {0.9501, 1.9001}, close));
  EXPECT_TRUE(same_bits(weight, master.astype(DType::float16)));
  const auto single = array({1.0001, 2.0001}), half = array({1, 2}, cpu(), DType::float16);
  invoke(mp_sgd_update, {half, grad, single}, {{.lr = 0.1}}, {.out = {half}});
  EXPECT_TRUE(all_close(single.to_vector<double>(), {0.9501, 1.9001}, close));
}

TEST(MultiSgd, RequiresARateAndADecayForEachWeight) {
  const std::vector<NDArray> two{array({1}), array({1}), array({2}), array({1})};
  EXPECT_TRUE(fails_with(
      [&] {
        invoke(multi_sgd_update, two, {.lrs = {0.1}, .wds = {0, 0}, .num_weights = 2});
      },
      "lrs", "1", "2"));
  EXPECT_TRUE(fails_with([&] { invoke(multi_sgd_update, two, {.lrs = {0.1}, .wds = {0}}); }, "takes 2 arrays"));
  EXPECT_TRUE(fails_with(
      [] {
        invoke(multi_sgd_update, {array({1}), array({1, 2})}, {.lrs = {0.1}, .wds = {0}});
      },
      "multi_sgd_update"));
}

TEST(MultiSgd, SumsOfSquaresAndLarsRates) {
  const NDArray big = full({300, 1000}, 0.5);
  const NDArray sums = invoke(multi_sum_sq, {array({3, 4}), big, array({2}, cpu(), DType::float16)}, {})[0];
  EXPECT_TRUE(all_close(sums.to_vector<double>(), {25, 75000, 4}, close));
  const NDArray rates = invoke(multi_lars, {array({1, 1, 1}), array({25, 0, 4}), array({4, 4, 0}), array({0.1, 0, 0})},
                               {.eta = 0.5, .eps = 0.25, .rescale_grad = 0.5})[0];
  EXPECT_TRUE(all_close(rates.to_vector<double>(), {0.5 * 5 / (1 + 0.5 + 0.25), 1, 1}, close));
}

}  // namespace
}  // namespace symbind::testing
