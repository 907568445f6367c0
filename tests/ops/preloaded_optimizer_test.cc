#include "symbind/ops/preloaded_optimizer.h"

#include <gtest/gtest.h>

#include "symbind/exec/executor.h"
#include "symbind/exec/invoke.h"
#include "symbind/ops/multi_optimizer.h"

#include "tests/support/arrays.h"

namespace symbind::testing {
namespace {

// Rates in arrays are those in parameters.
TEST(PreloadedSgd, IsMultiSgdWithItsRatesInArrays) {
  for (const Context context : all_devices()) {
    SCOPED_TRACE(join(context));
    const auto arrays = [&] {
      return std::vector<NDArray>{array({1, 2}, context), array({0.5, -1}, context), array({0.1, 0.2}, context),
                                  array({3}, context),    array({2}, context),       array({-0.5}, context)};
    };
    const std::vector<NDArray> wanted_inputs = arrays();
    const auto wanted =
        invoke(multi_sgd_mom_update, wanted_inputs,
               {.lrs = {0.5, 0.25}, .wds = {0.125, 0}, .momentum = 0.75, .clip_gradient = 0.75, .num_weights = 2});
    std::vector<NDArray> inputs = arrays();
    const NDArray momentum = inputs[2];
    inputs.push_back(array({0.5, 0.25}, context));
    inputs.push_back(array({0.125, 0}, context));
    const auto found =
        invoke(preloaded_multi_sgd_mom_update, inputs, {.momentum = 0.75, .clip_gradient = 0.75, .num_weights = 2});
    ASSERT_EQ(found.size(), 2u);
    for (size_t i = 0; i < 2; ++i) EXPECT_TRUE(same_bits(found[i], wanted[i])) << i;
    EXPECT_TRUE(same_bits(momentum, wanted_inputs[2])) << "the states are updated too";
  }
}

TEST(PreloadedSgd, InfersTheShapesOfRates) {
  const Symbol net = preloaded_multi_sgd_update(
      {Symbol::variable("w"), Symbol::variable("g"), Symbol::variable("lrs"), Symbol::variable("wds")}, {}, "update");
  const auto shapes = infer_shape(net, {{"w", {2, 3}}});
  EXPECT_EQ(shapes.args[1], (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(shapes.args[2], (std::vector<int64_t>{1}));
  EXPECT_TRUE(fails_with([&] { infer_shape(net, {{"w", {2, 3}}, {"lrs", {2}}}); }, "lrs", "(2,)", "(1,)"));
  EXPECT_TRUE(fails_with([] { invoke(preloaded_multi_sgd_update, {array({1}), array({1})}, {}); }, "takes 4 arrays"));
}

}  // namespace
}  // namespace symbind::testing
