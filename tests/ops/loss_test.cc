#include "symbind/ops/loss.h"

#include <cmath>

#include <gtest/gtest.h>

#include "symbind/exec/executor.h"

#include "tests/support/arrays.h"

namespace symbind::testing {
namespace {

const auto data = Symbol::variable("data"), label = Symbol::variable("label");
constexpr Tolerance close{.relative = 1e-5, .absolute = 1e-6};

// Forward and backward of a head without out_grads: its output and the gradient of data.
struct Result {
  std::vector<double> output, gradient;
};
Result run(const Symbol& net, const NamedArrays& values, const std::vector<NDArray>& out_grads = {}) {
  NamedShapes shapes;
  for (const auto& [name, value] : values) shapes[name] = value.shape();
  auto executor = simple_bind(net, cpu(), shapes);
  Result result{executor->forward(true, values)[0].to_vector<double>(), {}};
  if (out_grads.empty())
    executor->backward();
  else
    executor->backward(out_grads);
  result.gradient = executor->grad_dict().at("data").to_vector<double>();
  return result;
}

// Two rows of equal odds, but for one class three times as likely.
const std::vector<double> odds = {0, 0, 0, std::log(3.0), 0, 0};

Result softmax_rows(const SoftmaxOutput& params, std::vector<double> labels = {1, 0}) {
  return run(softmax_output(data, label, params), {{"data", array(odds, {2, 3})}, {"label", array(labels, {2})}});
}

TEST(SoftmaxOutput, IsTheSoftmaxWithTheGradientOfCrossEntropy) {
  const auto result = softmax_rows({});
  EXPECT_TRUE(all_close(result.output, {1. / 3, 1. / 3, 1. / 3, 0.6, 0.2, 0.2}, close));
  EXPECT_TRUE(all_close(result.gradient, {1. / 3, -2. / 3, 1. / 3, -0.4, 0.2, 0.2}, close));
}

TEST(SoftmaxOutput, ScalesNormalisesIgnoresAndSmooths) {
  EXPECT_TRUE(all_close(softmax_rows({.grad_scale = 2, .normalization = "batch"}).gradient,
                        {1. / 3, -2. / 3, 1. / 3, -0.4, 0.2, 0.2}, close));
  EXPECT_TRUE(
      all_close(softmax_rows({.ignore_label = 1, .use_ignore = true}).gradient, {0, 0, 0, -0.4, 0.2, 0.2}, close));
  EXPECT_TRUE(all_close(softmax_rows({.normalization = "valid"}, {-1, 0}).gradient,
                        {1. / 3, 1. / 3, 1. / 3, -0.4, 0.2, 0.2}, close));
  EXPECT_TRUE(all_close(softmax_rows({.smooth_alpha = 0.2}).gradient,
                        {1. / 3 - 0.1, 1. / 3 - 0.8, 1. / 3 - 0.1, -0.2, 0.1, 0.1}, close));
}

TEST(SoftmaxOutput, OneLabelPerPositionSharesTheWeight) {
  const auto result = run(softmax_output(data, label, {.multi_output = true}),
                          {{"data", zeros({1, 2, 2})}, {"label", array<double>({0, 1}, {1, 2})}});
  EXPECT_TRUE(all_close(result.gradient, {-0.25, 0.25, 0.25, -0.25}, close));
}

TEST(SoftmaxOutput, TakesADistributionAsLabel) {
  const auto result =
      run(softmax_output(data, label), {{"data", zeros({1, 2})}, {"label", array<double>({0.9, 0.1}, {1, 2})}});
  EXPECT_TRUE(all_close(result.gradient, {-0.4, 0.4}, close));
}

TEST(SoftmaxOutput, MultipliesWithTheArrivingGradientWhenAsked) {
  const auto result = run(softmax_output(data, label, {.out_grad = true}),
                          {{"data", zeros({1, 2})}, {"label", zeros({1})}}, {array<double>({2, 10}, {1, 2})});
  EXPECT_TRUE(all_close(result.gradient, {-1, 5}, close));
}

TEST(SoftmaxOutput, InfersItsLabel) {
  const auto shape_of_label = [](const SoftmaxOutput& params, const Shape& shape) {
    return infer_shape(softmax_output(data, label, params), {{"data", shape}}).args[1];
  };
  EXPECT_EQ(shape_of_label({}, {4, 3}), (std::vector<int64_t>{4}));
  EXPECT_EQ(shape_of_label({.preserve_shape = true}, {4, 3, 2}), (std::vector<int64_t>{4, 3}));
  EXPECT_EQ(shape_of_label({.multi_output = true}, {4, 3, 2, 5}), (std::vector<int64_t>{4, 10}));
  const auto multi = softmax_output(data, label, {.multi_output = true}, "softmax");
  for (const Shape& shape : {Shape{4, 10}, Shape{4, 2, 5}, Shape{4, 1, 2, 5}})
    EXPECT_TRUE(infer_shape(multi, {{"data", {4, 3, 2, 5}}, {"label", shape}}).complete) << shape;
  EXPECT_TRUE(fails_with(
      [&] {
        infer_shape(multi, {{"data", {4, 3, 2, 5}}, {"label", {40}}});
      },
      "[SoftmaxOutput softmax] label must be (4,10), (4,2,5), (4,1,2,5)", "label (40,)"));
  EXPECT_TRUE(fails_with([] { softmax_output(data, {.normalization = "mean"}, "s"); },
                         "normalization must be one of batch, null, valid: mean"));
  EXPECT_EQ(softmax_output(data, {}, "softmax").list_arguments()[1], "softmax_label");
}

TEST(LinearRegressionOutput, HasTheGradientOfHalfTheSquaredDifference) {
  const auto result =
      run(linear_regression_output(data, label, {.grad_scale = 3}),
          {{"data", array<double>({1, 2, 3, 4}, {2, 2})}, {"label", array<double>({1, 1, 1, 1}, {2, 2})}});
  EXPECT_EQ(result.output, (std::vector<double>{1, 2, 3, 4}));
  EXPECT_EQ(result.gradient, (std::vector<double>{0, 1.5, 3, 4.5}));
}

TEST(LinearRegressionOutput, ComparesAColumnWithAList) {
  const auto net = linear_regression_output(data, label, {}, "lro");
  EXPECT_EQ(infer_shape(net, {{"data", {5, 1}}}).args[1], (std::vector<int64_t>{5}));
  EXPECT_EQ(infer_shape(net, {{"data", {5, 3}}}).args[1], (std::vector<int64_t>{5, 3}));
  EXPECT_TRUE(infer_shape(net, {{"data", {5, 1}}, {"label", {5, 1}}}).complete);
  EXPECT_TRUE(infer_shape(net, {{"data", {2, 6}}, {"label", {2, 3, 2}}}).complete);
  EXPECT_TRUE(fails_with(
      [&] {
        infer_shape(net, {{"data", {4, 3}}, {"label", {4, 2}}});
      },
      "[LinearRegressionOutput lro] label", "(4,2)", "(4,3)"));
}

TEST(MakeLoss, ReturnsItsDataAndStartsTheGradient) {
  const auto with = [](const MakeLoss& params) {
    return run(make_loss(data, params), {{"data", array<double>({1, 2, -3, 4, 5, 6}, {2, 3})}});
  };
  EXPECT_EQ(with({}).output, (std::vector<double>{1, 2, -3, 4, 5, 6}));
  EXPECT_EQ(with({.grad_scale = 3}).gradient, std::vector<double>(6, 3));
  EXPECT_EQ(with({.grad_scale = 3, .normalization = "batch"}).gradient, std::vector<double>(6, 1.5));
  EXPECT_EQ(with({.grad_scale = 4, .valid_thresh = 2, .normalization = "valid"}).gradient,
            std::vector<double>(6, static_cast<float>(4. / 3)));
}

}  // namespace
}  // namespace symbind::testing
