#include "symbind/ops/leaky_relu.h"

#include <gtest/gtest.h>

#include "symbind/core/random.h"
#include "symbind/exec/executor.h"
#include "symbind/exec/invoke.h"

#include "tests/support/arrays.h"

namespace symbind::testing {
namespace {

const Symbol data = Symbol::variable("data");

TEST(LeakyReLU, DrawsItsSlopesInTrainingAndTakesTheirMeanElsewhere) {
  auto executor = simple_bind(leaky_relu(data, {.act_type = "rrelu", .lower_bound = 0.25, .upper_bound = 0.75}), cpu(),
                              {{"data", {1000}}});
  EXPECT_EQ(executor->outputs().size(), 1u);
  executor->forward(false, {{"data", full({1000}, -1)}});
  for (const float y : executor->outputs()[0].to_vector<float>()) ASSERT_EQ(y, -0.5f);
  executor->forward(true);
  const auto slopes = executor->outputs()[0].to_vector<double>();
  double sum = 0;
  for (const double y : slopes) {
    ASSERT_GE(-y, 0.25);
    ASSERT_LE(-y, 0.75);
    sum -= y;
  }
  EXPECT_NEAR(sum / 1000, 0.5, 0.03);
  executor->backward({ones({1000})});
  const auto grads = executor->grad_dict().at("data").to_vector<double>();
  for (size_t i = 0; i < slopes.size(); ++i) ASSERT_EQ(grads[i], -slopes[i]);
  executor->forward(true);
  EXPECT_FALSE(same_bits(executor->outputs()[0], array(slopes, {1000})));  // drawn anew
}

TEST(LeakyReLU, MakesAVariableForTheSlopesOfPrelu) {
  const Symbol net = leaky_relu(data, {.act_type = "prelu"}, "act");
  EXPECT_EQ(net.list_arguments(), (Names{"data", "act_gamma"}));
  EXPECT_EQ(net.attr_dict().at("act_gamma").at("__init__"), R"(["Constant", {"value": 0.25}])");
  EXPECT_EQ(infer_shape(net, {{"data", {2, 3, 4}}}).args[1], (std::vector<int64_t>{3}));
  EXPECT_TRUE(fails_with(
      [&] {
        infer_shape(net, {{"data", {2, 3}}, {"act_gamma", {2}}});
      },
      "[LeakyReLU act]", "gamma"));
}

TEST(LeakyReLU, RefusesBoundsTheWrongWayRound) {
  EXPECT_TRUE(fails_with([] { leaky_relu(data, {.act_type = "rrelu", .lower_bound = 0.5}); }, "lower_bound"));
  EXPECT_TRUE(fails_with([] { leaky_relu(data, {.act_type = "relu"}); }, "must be one of"));
}

}  // namespace
}  // namespace symbind::testing
