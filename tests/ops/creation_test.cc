#include "symbind/ops/creation.h"

#include <cmath>

#include <gtest/gtest.h>

#include "symbind/exec/executor.h"
#include "symbind/exec/invoke.h"
#include "symbind/ops/elementwise.h"

#include "tests/support/arrays.h"

namespace symbind::testing {
namespace {

TEST(Creation, FillsEveryType) {
  for (const char* type : {"float32", "float64", "float16", "uint8", "int8", "int32", "int64", "bool"}) {
    const auto filled = invoke("_ones", {}, {{"shape", "(2, 3)"}, {"dtype", type}})[0];
    EXPECT_EQ(filled.dtype(), dtype_from_name(type));
    EXPECT_EQ(filled.to_vector<int>(), std::vector<int>(6, 1));
  }
  EXPECT_EQ(zeros_like(counted({2})).to_vector<int>(), (std::vector<int>{0, 0}));
  EXPECT_EQ(ones_like(counted({2})).to_vector<int>(), (std::vector<int>{1, 1}));
}

TEST(Creation, InfersWhatIsNotGiven) {
  const auto net = elemwise_add(make_zeros({.shape = {0, 3}}), Symbol::variable("x"));
  EXPECT_EQ(infer_shape(net, {{"x", {2, 3}}}).outputs[0], (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(eval(net, {{"x", ones({2, 3})}})[0].to_vector<int>(), std::vector<int>(6, 1));
}

NDArray made(const char* op, const Attributes& attributes) { return invoke(op, {}, attributes)[0]; }

TEST(Creation, AnythingCanFill) {
  EXPECT_TRUE(std::isnan(made("_full", {{"shape", "(1,)"}, {"value", "nan"}}).item()));
  EXPECT_TRUE(fails_with([] { made("_full", {{"shape", "(2,)"}}); }, "value must be given"));
}

TEST(Creation, ARangeOfIntegersCountsInIntegers) {
  const auto steps = made("_arange", {{"start", "0"}, {"stop", "5"}, {"step", "1.5"}, {"dtype", "int64"}});
  EXPECT_EQ(steps.to_vector<int64_t>(), (std::vector<int64_t>{0, 1, 2, 3}));
  // The second of these is no double.
  const auto large = made("_arange", {{"start", "9007199254740992"}, {"stop", "9007199254740996"}, {"dtype", "int64"}});
  EXPECT_EQ(large.to_vector<int64_t>()[1], int64_t{9007199254740993});
}

TEST(Creation, ARangeOfHalvesHasFractions) {
  const auto halves = made("_arange", {{"start", "0"}, {"stop", "1"}, {"step", "0.25"}, {"dtype", "float16"}});
  EXPECT_EQ(halves.to_vector<double>(), (std::vector<double>{0, 0.25, 0.5, 0.75}));
}

TEST(Creation, AnEmptyRangeIsEmpty) {
  EXPECT_EQ(made("_arange", {{"start", "3"}, {"stop", "1"}}).shape(), Shape{0});
  EXPECT_EQ(made("_linspace", {{"start", "3"}, {"stop", "1"}, {"num", "0"}}).shape(), Shape{0});
  EXPECT_EQ(made("_eye", {{"N", "0"}}).shape(), (Shape{0, 0}));
}

TEST(Creation, ARangeIsAsLongAsTheNetworkNeeds) {
  const auto range = make_arange({.start = 2, .step = 0.5, .repeat = 2, .infer_range = true});
  const auto net = elemwise_add(range, Symbol::variable("x"));
  EXPECT_EQ(eval(net, {{"x", zeros({5})}})[0].to_vector<double>(), (std::vector<double>{2, 2, 2.5, 2.5, 3}));
  EXPECT_TRUE(fails_with([&] { infer_shape(net, {{"x", {2, 3}}}); }, "(2,3)"));
}

TEST(Creation, RefusesImpossibleRanges) {
  EXPECT_TRUE(fails_with([] { made("_arange", {{"start", "0"}, {"stop", "3"}, {"step", "0"}}); }, "step"));
  EXPECT_TRUE(fails_with([] { made("_arange", {{"start", "0"}, {"stop", "inf"}}); }, "finite"));
  EXPECT_TRUE(fails_with([] { made("_arange", {{"start", "1e300"}}); }, "too many"));
  EXPECT_TRUE(fails_with([] { made("_arange", {{"start", "3"}, {"dtype", "bool"}}); }, "dtype"));
  EXPECT_TRUE(fails_with([] { made("_linspace", {{"start", "0"}, {"stop", "1"}, {"num", "-1"}}); }, "num"));
  EXPECT_TRUE(fails_with([] { made("_eye", {{"N", "-1"}}); }, "N"));
}

}  // namespace
}  // namespace symbind::testing
