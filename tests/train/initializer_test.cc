#include "symbind/train/initializer.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <gtest/gtest.h>

#include "symbind/core/random.h"

#include "tests/support/arrays.h"

namespace symbind {
namespace {

using testing::fails_with;
using testing::same_bits;

NDArray initialized(const Initializer& initializer, const InitDesc& desc, const Shape& shape,
                    DType dtype = DType::float32) {
  NDArray array = full(shape, 77, cpu(), dtype);
  initializer(desc, array);
  return array;
}

NDArray weight(const Initializer& initializer, const Shape& shape, DType dtype = DType::float32) {
  return initialized(initializer, {"fc1_weight"}, shape, dtype);
}

double largest(const NDArray& array) {
  double result = 0;
  for (const double value : array.to_vector<double>()) result = std::max(result, std::abs(value));
  return result;
}

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double deviation(const NDArray& array) {
  std::vector<double> squares = array.to_vector<double>();
  for (double& value : squares) value *= value;
  return std::sqrt(mean(squares));
}

TEST(Initializer, NamesHaveTheirUsualValues) {
  const init::Uniform uniform;
  const auto value = [&](const std::string& name) { return initialized(uniform, {name}, {3}).to_vector<double>(); };
  const std::vector<double> zero(3, 0), one(3, 1);
  EXPECT_EQ(value("fc1_bias"), zero);
  EXPECT_EQ(value("bn_gamma"), one);
  EXPECT_EQ(value("bn_beta"), zero);
  EXPECT_EQ(value("data_min"), zero);
  EXPECT_EQ(value("data_max"), one);
}

TEST(Initializer, AnUnknownNameFailsAndSaysWhatToDo) {
  NDArray array = zeros({2});
  EXPECT_TRUE(fails_with([&] { init::Uniform()(InitDesc{"alpha"}, array); }, "alpha", "weight", ".init ="));
  EXPECT_TRUE(fails_with([&] { init::Uniform()(InitDesc{"bn_moving_mean"}, array); }, "bn_moving_mean"));
}

TEST(Initializer, APlainNameAlsoKnowsMovingStatistics) {
  const init::Uniform uniform;
  NDArray array = full({2}, 77);
  uniform("bn_moving_mean", array);
  EXPECT_EQ(array.to_vector<double>(), (std::vector<double>{0, 0}));
  uniform("bn_moving_var", array);
  EXPECT_EQ(array.to_vector<double>(), (std::vector<double>{1, 1}));
  uniform("fc_bias", array);
  EXPECT_EQ(array.to_vector<double>(), (std::vector<double>{0, 0}));
  NDArray kernel = zeros({1, 1, 4, 4});
  uniform("upsampling0_weight", kernel);
  EXPECT_EQ(kernel.reshape({16}).slice(4, 8).to_vector<double>(),
            (std::vector<double>{0.1875, 0.5625, 0.5625, 0.1875}));
}

TEST(Initializer, AVariablesOwnInitializerComesFirst) {
  const init::Uniform uniform;
  EXPECT_EQ(initialized(uniform, {"moving_var", {{"__init__", "[\"one\", {}]"}}}, {1}).item(), 1);
  EXPECT_EQ(initialized(uniform, {"any", {{"__init__", "zeros"}}}, {1}).item(), 0);
  EXPECT_EQ(initialized(uniform, {"fc_bias", {{"__init__", "[\"constant\", {\"value\": 2.5}]"}}}, {1}).item(), 2.5);
}

TEST(Initializer, SeedMakesItReproducible) {
  const init::Xavier xavier;
  seed(5);
  const NDArray first = weight(xavier, {7, 5}), second = weight(xavier, {7, 5});
  seed(5);
  EXPECT_TRUE(same_bits(weight(xavier, {7, 5}), first));
  EXPECT_TRUE(same_bits(weight(xavier, {7, 5}), second));
  seed(6);
  EXPECT_FALSE(same_bits(weight(xavier, {7, 5}), first));
  EXPECT_FALSE(same_bits(second, first));
}

TEST(Initializer, UniformFillsItsRange) {
  seed(1);
  EXPECT_NEAR(largest(weight(init::Uniform(), {100, 100})), 0.07, 0.0001);
  const NDArray wide = weight(init::Uniform(2), {100, 100});
  EXPECT_LE(largest(wide), 2);
  EXPECT_NEAR(mean(wide.to_vector<double>()), 0, 0.06);
  EXPECT_NEAR(deviation(wide), 2 / std::sqrt(3.0), 0.03);
}

TEST(Initializer, XavierFollowsTheNumbersOfInputsAndOutputs) {
  seed(1);
  EXPECT_NEAR(largest(weight(init::Xavier(), {100, 200})), std::sqrt(3 / 150.0), 1e-4);
  EXPECT_NEAR(largest(weight(init::Xavier({.factor_type = "in"}), {100, 200})), std::sqrt(3 / 200.0), 1e-4);
  EXPECT_NEAR(largest(weight(init::Xavier({.factor_type = "out", .magnitude = 2}), {100, 200})), std::sqrt(2 / 100.0),
              1e-4);
  EXPECT_NEAR(largest(weight(init::Xavier({.factor_type = "in"}), {64, 16, 5, 5})), std::sqrt(3 / 400.0), 1e-4);
  const NDArray normal = weight(init::Xavier({.rnd_type = "gaussian"}), {200, 200});
  EXPECT_NEAR(deviation(normal), std::sqrt(3 / 200.0), 0.002);
  EXPECT_GT(largest(normal), 3 * std::sqrt(3 / 200.0));
}

TEST(Initializer, EveryFloatingTypeGetsTheSameNumbers) {
  seed(3);
  const NDArray reference = weight(init::Uniform(1), {33});
  for (const DType dtype : {DType::float64, DType::float16, DType::bfloat16}) {
    seed(3);
    EXPECT_TRUE(same_bits(weight(init::Uniform(1), {33}, dtype), reference.astype(dtype))) << dtype;
  }
}

TEST(Initializer, BadUseIsSaid) {
  EXPECT_TRUE(fails_with([] { weight(init::Xavier(), {5}); }, "fc1_weight", "two axes", "(5"));
  EXPECT_TRUE(fails_with([] { weight(init::Uniform(), {5}, DType::int32); }, "fc1_weight", "int32"));
  EXPECT_TRUE(fails_with([] { init::Xavier({.rnd_type = "normal"}); }, "uniform or gaussian", "normal"));
  EXPECT_TRUE(fails_with([] { init::Xavier({.factor_type = "both"}); }, "avg, in or out", "both"));
}

TEST(Initializer, TextMakesTheSameInitializerAgain) {
  const std::string xavier = "[\"xavier\", {\"rnd_type\": \"gaussian\", \"factor_type\": \"in\", \"magnitude\": 2.34}]";
  EXPECT_EQ(init::Xavier({.rnd_type = "gaussian", .factor_type = "in", .magnitude = 2.34}).dumps(), xavier);
  EXPECT_EQ(create_initializer(xavier)->dumps(), xavier);
  EXPECT_EQ(create_initializer("Xavier")->dumps(), init::Xavier().dumps());
  EXPECT_EQ(create_initializer("[\"uniform\", {}]")->dumps(), "[\"uniform\", {\"scale\": 0.07}]");
  EXPECT_EQ(init::Zero().dumps(), "[\"zero\", {}]");
}

TEST(Initializer, BadTextIsSaid) {
  EXPECT_TRUE(fails_with([] { create_initializer("xaviar"); }, "xaviar", "xavier", "uniform"));
  EXPECT_TRUE(fails_with([] { create_initializer("[\"uniform\", {"); }, "[\"uniform\", {"));
  EXPECT_TRUE(fails_with([] { create_initializer("[\"uniform\", {\"scael\": 1}]"); }, "uniform", "scael"));
  EXPECT_TRUE(fails_with([] { create_initializer("[\"uniform\", {\"scale\": \"a\"}]"); }, "scale", "a number"));
  EXPECT_TRUE(fails_with([] { create_initializer("constant"); }, "constant", "value", "missing"));
}

class Seven final : public Initializer {
 public:
  std::string dumps() const override { return "[\"seven\", {}]"; }

 private:
  void init_weight(const InitDesc&, NDArray& array) const override { array.fill(7); }
};

TEST(Initializer, OnesOwnCanBeRegistered) {
  register_initializer("Seven", [](const std::string&) { return std::make_shared<Seven>(); });
  EXPECT_EQ(initialized(init::Zero(), {"any", {{"__init__", "seven"}}}, {1}).item(), 7);
}

}  // namespace
}  // namespace symbind
