#include "symbind/ops/batch_norm.h"

#include <cmath>

#include <gtest/gtest.h>

#include "symbind/exec/executor.h"
#include "symbind/ops/activation.h"
#include "symbind/ops/elementwise.h"

#include "tests/support/arrays.h"
#include "tests/support/gradient_check.h"

namespace symbind::testing {
namespace {

const auto x = Symbol::variable("x");
constexpr Tolerance close{.relative = 1e-5, .absolute = 1e-6};

ExecutorPtr bound(const BatchNorm& params, const NDArray& data, DType dtype = DType::float32) {
  auto executor = simple_bind(batch_norm(x, params, "bn"), cpu(), {{"x", data.shape()}}, {.type_dict = {{"x", dtype}}});
  auto args = executor->arg_dict(), aux = executor->aux_dict();
  data.copyto(args["x"]);
  args["bn_gamma"].fill(2);
  args["bn_beta"].fill(1);
  aux["bn_moving_var"].fill(1);
  return executor;
}

// One channel holds 1 and 3 (mean 2, variance 1), the other 0 and 4 (mean 2, variance 4).
const std::vector<double> two_channels = {1, 0, 3, 4};

TEST(BatchNorm, NormalisesWithTheBatchInTraining) {
  auto executor = bound({.eps = 0, .fix_gamma = false, .output_mean_var = true}, array(two_channels, {2, 2}));
  const auto outputs = executor->forward(true);
  EXPECT_TRUE(all_close(outputs[0].to_vector<double>(), {-1, -1, 3, 3}, close));
  EXPECT_TRUE(all_close(outputs[1].to_vector<double>(), {2, 2}, close));
  EXPECT_TRUE(all_close(outputs[2].to_vector<double>(), {1, 0.5}, close)) << "the reciprocal deviation";
}

TEST(BatchNorm, MovesItsStatisticsOncePerTrainingForward) {
  auto executor = bound({.momentum = 0.75}, array(two_channels, {2, 2}));
  executor->forward(false);
  EXPECT_EQ(executor->aux_dict().at("bn_moving_mean").to_vector<double>(), (std::vector<double>{0, 0}));
  executor->forward(true);
  executor->backward(std::vector<NDArray>{ones({2, 2})});
  EXPECT_TRUE(all_close(executor->aux_dict().at("bn_moving_mean").to_vector<double>(), {0.5, 0.5}, close));
  EXPECT_TRUE(all_close(executor->aux_dict().at("bn_moving_var").to_vector<double>(), {1, 1.75}, close));
}

TEST(BatchNorm, UsesTheMovingStatisticsOtherwise) {
  for (bool global : {false, true}) {
    auto executor = bound({.eps = 3, .fix_gamma = false, .use_global_stats = global}, array(two_channels, {2, 2}));
    const auto outputs = executor->forward(global);
    EXPECT_TRUE(all_close(outputs[0].to_vector<double>(), {2, 1, 4, 5}, close));
    EXPECT_EQ(executor->aux_dict().at("bn_moving_mean").to_vector<double>(), (std::vector<double>{0, 0}));
  }
}

TEST(BatchNorm, FixedGammaIsOneAndHasNoGradient) {
  auto executor = bound({.eps = 0}, array(two_channels, {2, 2}));
  EXPECT_TRUE(all_close(executor->forward(true)[0].to_vector<double>(), {0, 0, 2, 2}, close));
  executor->backward(std::vector<NDArray>{counted({2, 2})});
  EXPECT_EQ(executor->grad_dict().at("bn_gamma").to_vector<double>(), (std::vector<double>{0, 0}));
  EXPECT_EQ(executor->grad_dict().at("bn_beta").to_vector<double>(), (std::vector<double>{4, 6}));
}

TEST(BatchNorm, GradientsAgreeWithFiniteDifferences) {
  for (int64_t axis : {1, -1, 0})
    for (bool global : {false, true}) {
      const Shape shape{4, 3, 5};
      const int64_t channels = shape[shape.axis(axis, "")];
      const auto part = [&](uint64_t seed, double low) {
        return random_array({channels}, seed, low, 2, DType::float64);
      };
      const auto net = batch_norm(x, {.fix_gamma = false, .use_global_stats = global, .axis = axis}, "bn");
      EXPECT_TRUE(check_gradient(
          net,
          {{"x", random_array(shape, 1, -1, 1, DType::float64)}, {"bn_gamma", part(2, 0.5)}, {"bn_beta", part(3, -1)}},
          {.aux = {{"bn_moving_mean", part(4, -1)}, {"bn_moving_var", part(5, 0.5)}}}))
          << "axis " << axis << (global ? " with moving statistics" : "");
    }
}

// The operator that is fused on devices with a kernel for it, on one without.
TEST(BatchNorm, WithASumAndReluHasTheNumbersOfTheSingleOperators) {
  const auto sum = Symbol::variable("sum");
  const BatchNorm params{.momentum = 0.75, .fix_gamma = false, .output_mean_var = true};
  const Symbol norm = batch_norm(x, params, "bn");
  const Symbol single = Symbol::group({activation(norm[0] + sum, {.act_type = "relu"}), norm[1], norm[2]});
  const Symbol fused = batch_norm_add_relu({{"data", x}, {"sum", sum}}, {params}, "bn");
  const Shape shape{4, 3, 5};
  const auto bound_with_values = [&](const Symbol& net) {
    auto executor = simple_bind(net, cpu(), {{"x", shape}, {"sum", shape}}, {.grad_req = "null"});
    uint64_t seed = 0;
    for (const auto& values : {executor->arg_dict(), executor->aux_dict()})
      for (const auto& [name, array] : values) random_array(array.shape(), ++seed, 0.25, 2).copyto(array);
    random_array(shape, 9, -1, 1).copyto(executor->arg_dict().at("sum"));
    return executor;
  };
  const auto expected = bound_with_values(single), executor = bound_with_values(fused);
  for (const bool train : {true, false}) {
    const auto outputs = executor->forward(train), expected_outputs = expected->forward(train);
    ASSERT_EQ(outputs.size(), 3u);
    for (size_t i = 0; i < 3; ++i) EXPECT_TRUE(all_close(outputs[i], expected_outputs[i], close)) << i << ", " << train;
    for (const auto& [name, state] : expected->aux_dict())
      EXPECT_TRUE(all_close(executor->aux_dict().at(name), state, close)) << name << ", " << train;
  }
}

TEST(BatchNorm, IsExactFarFromZero) {
  const auto data = array<double>({10000, 10001, 10002, 10003}, {4, 1});
  auto executor = bound({.eps = 0}, data);
  const double unit = 1 / std::sqrt(1.25);
  EXPECT_TRUE(all_close(executor->forward(true)[0].to_vector<double>(),
                        {1 - 1.5 * unit, 1 - 0.5 * unit, 1 + 0.5 * unit, 1 + 1.5 * unit}, close));
}

TEST(BatchNorm, HalfPrecisionHasFloatParameters) {
  auto executor = bound({.fix_gamma = false}, array(two_channels, {2, 2}), DType::float16);
  EXPECT_EQ(executor->arg_dict().at("bn_gamma").dtype(), DType::float32);
  EXPECT_EQ(executor->aux_dict().at("bn_moving_var").dtype(), DType::float32);
  EXPECT_EQ(executor->forward(true)[0].dtype(), DType::float16);
  EXPECT_EQ(infer_type(batch_norm(x, {}, "bn"), {{"x", DType::float64}}).args[1], DType::float64);
  EXPECT_TRUE(fails_with(
      [] {
        infer_type(batch_norm(x, {}, "bn"), {{"x", DType::int32}});
      },
      "[BatchNorm bn]", "floating type: int32"));
}

TEST(BatchNorm, InfersChannelsFromEitherSide) {
  const auto net = batch_norm(x, {.axis = -1}, "bn");
  EXPECT_EQ(infer_shape(net, {{"x", {2, 3, 4}}}).args[1], (std::vector<int64_t>{4}));
  EXPECT_EQ(infer_shape(net, {{"x", {2, 3, 0}}, {"bn_gamma", {4}}}).args[0], (std::vector<int64_t>{2, 3, 4}));
  EXPECT_TRUE(fails_with(
      [&] {
        infer_shape(net, {{"x", {2, 3}}, {"bn_beta", {4}}});
      },
      "[BatchNorm bn] beta", "(4,)", "(3,)"));
  EXPECT_TRUE(fails_with(
      [] {
        infer_shape(batch_norm(x, {.axis = 2}, "bn"), {{"x", {2, 3}}});
      },
      "[BatchNorm bn] axis"));
}

TEST(BatchNorm, ItsStatesKnowHowToStart) {
  const auto attributes = batch_norm(x, {}, "bn").attr_dict();
  EXPECT_EQ(attributes.at("bn_moving_mean").at("__init__"), R"(["zero", {}])");
  EXPECT_EQ(attributes.at("bn_moving_var").at("__init__"), R"(["one", {}])");
}

}  // namespace
}  // namespace symbind::testing
