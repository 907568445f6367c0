#include "symbind/ops/fully_connected.h"

#include <gtest/gtest.h>

#include "symbind/exec/executor.h"
#include "symbind/exec/invoke.h"

#include "tests/support/arrays.h"
#include "tests/support/gradient_check.h"

namespace symbind::testing {
namespace {

const auto x = Symbol::variable("x");

TEST(FullyConnected, ComputesAnAffineMapOfRows) {
  const auto data = array<double>({1, 2, 3, 4}, {2, 2}), weight = array<double>({1, 0, 0, 1, 1, -1}, {3, 2});
  const auto y = fully_connected(data, weight, array({10, 20, 30}), {.num_hidden = 3});
  EXPECT_EQ(y.shape(), Shape({2, 3}));
  EXPECT_EQ(y.to_vector<double>(), (std::vector<double>{11, 22, 29, 13, 24, 29}));
}

// Up to four rows are computed by another loop than more.
TEST(FullyConnected, AgreesWithFloat64ForEveryNumberOfRows) {
  for (const int64_t rows : {1, 2, 3, 4, 5})
    for (const int64_t inner : {1, 15, 16, 63, 64, 130}) {
      const auto data = random_array({rows, inner}, 1), weight = random_array({37, inner}, 2),
                 bias = random_array({37}, 3);
      for (const bool no_bias : {false, true}) {
        const auto compute = [&](DType dtype) {
          const auto x64 = data.astype(dtype), w64 = weight.astype(dtype);
          return no_bias ? fully_connected(x64, w64, {.num_hidden = 37, .no_bias = true})
                         : fully_connected(x64, w64, bias.astype(dtype), {.num_hidden = 37});
        };
        EXPECT_TRUE(all_close(compute(DType::float32), compute(DType::float64).astype(DType::float32), {1e-5, 1e-5}))
            << rows << " rows of " << inner << (no_bias ? " without bias" : "");
      }
    }
}

TEST(FullyConnected, FlattensUnlessToldNotTo) {
  const auto data = counted({2, 2, 2});
  const auto all = fully_connected(data, ones({1, 4}), {.num_hidden = 1, .no_bias = true});
  EXPECT_EQ(all.to_vector<double>(), (std::vector<double>{10, 26}));
  const auto last = fully_connected(data, ones({1, 2}), {.num_hidden = 1, .no_bias = true, .flatten = false});
  EXPECT_EQ(last.shape(), Shape({2, 2, 1}));
  EXPECT_EQ(last.to_vector<double>(), (std::vector<double>{3, 7, 11, 15}));
}

TEST(FullyConnected, TakesAListOfNumbersForRowsOfOne) {
  const auto net = fully_connected(x, {.num_hidden = 3}, "fc");
  const auto shapes = infer_shape(net, {{"x", {4}}});
  EXPECT_EQ(shapes.args, (std::vector<std::vector<int64_t>>{{4}, {3, 1}, {3}}));
  EXPECT_EQ(shapes.outputs, (std::vector<std::vector<int64_t>>{{4, 3}}));
  EXPECT_TRUE(check_gradient(net, {{"x", random_array({4}, 1, -1, 1, DType::float64)},
                                   {"fc_weight", random_array({3, 1}, 2, -1, 1, DType::float64)},
                                   {"fc_bias", random_array({3}, 3, -1, 1, DType::float64)}}));
}

TEST(FullyConnected, WithoutFlattenAListOfNumbersIsOneRow) {
  const auto net = fully_connected(x, {.num_hidden = 3, .flatten = false}, "fc");
  const auto shapes = infer_shape(net, {{"x", {4}}});
  EXPECT_EQ(shapes.args, (std::vector<std::vector<int64_t>>{{4}, {3, 4}, {3}}));
  EXPECT_EQ(shapes.outputs, (std::vector<std::vector<int64_t>>{{3}}));
  EXPECT_TRUE(check_gradient(net, {{"x", random_array({4}, 1, -1, 1, DType::float64)},
                                   {"fc_weight", random_array({3, 4}, 2, -1, 1, DType::float64)},
                                   {"fc_bias", random_array({3}, 3, -1, 1, DType::float64)}}));
}

TEST(FullyConnected, GradientsAgreeWithFiniteDifferences) {
  for (bool flatten : {true, false}) {
    const auto net = fully_connected(x, {.num_hidden = 3, .flatten = flatten}, "fc");
    const int64_t row = flatten ? 6 : 3;
    EXPECT_TRUE(check_gradient(net, {{"x", random_array({4, 2, 3}, 1, -1, 1, DType::float64)},
                                     {"fc_weight", random_array({3, row}, 2, -1, 1, DType::float64)},
                                     {"fc_bias", random_array({3}, 3, -1, 1, DType::float64)}}));
  }
}

TEST(FullyConnected, InfersParametersFromDataAndTheBatchFromTheOutput) {
  const auto net = fully_connected(x, {.num_hidden = 3}, "fc");
  const auto shapes = infer_shape(net, {{"x", {5, 2, 2}}});
  EXPECT_EQ(shapes.args, (std::vector<std::vector<int64_t>>{{5, 2, 2}, {3, 4}, {3}}));
  EXPECT_EQ(shapes.outputs, (std::vector<std::vector<int64_t>>{{5, 3}}));
  const auto sum = net + Symbol::variable("other");
  const auto back = infer_shape_partial(sum, {{"x", {0, 4}}, {"other", {7, 3}}});
  EXPECT_EQ(back.args[0], (std::vector<int64_t>{7, 4}));
}

TEST(FullyConnected, SaysWhatDoesNotFit) {
  const auto net = fully_connected(x, {.num_hidden = 3}, "fc");
  EXPECT_TRUE(fails_with(
      [&] {
        infer_shape(net, {{"x", {2, 4}}, {"fc_weight", {3, 5}}});
      },
      "[FullyConnected fc]", "weight has 5 inputs", "row of data has 4", "(3,5)", "(2,4)"));
  EXPECT_TRUE(fails_with([] { fully_connected(x, {.num_hidden = 0}, "fc"); }, "num_hidden must be at least 1: 0"));
  EXPECT_TRUE(fails_with([] { fully_connected(x, {}, "fc"); }, "num_hidden must be given"));
}

TEST(FullyConnected, WithActivationEqualsTheTwoOperators) {
  const auto data = random_array({3, 4}, 1), weight = random_array({5, 4}, 2), bias = random_array({5}, 3);
  for (const char* type : {"relu", "sigmoid", "tanh", "softrelu", "softsign"}) {
    const auto fused = invoke(fully_connected_activation, {data, weight, bias}, {{.num_hidden = 5}, type});
    const auto plain =
        invoke("Activation", {fully_connected(data, weight, bias, {.num_hidden = 5})}, {{"act_type", type}});
    EXPECT_TRUE(all_close(fused[0], plain[0])) << type;
  }
}

}  // namespace
}  // namespace symbind::testing
