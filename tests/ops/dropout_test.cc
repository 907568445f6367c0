#include "symbind/ops/dropout.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "symbind/exec/executor.h"

#include "tests/support/arrays.h"

namespace symbind::testing {
namespace {

const auto x = Symbol::variable("x");

ExecutorPtr bound(const Dropout& params, const Shape& shape) {
  auto executor = simple_bind(dropout(x, params, "drop"), cpu(), {{"x", shape}});
  NDArray(executor->arg_dict().at("x")).fill(3);
  return executor;
}

TEST(Dropout, DropsItsShareAndScalesTheRest) {
  seed(5);
  auto executor = bound({.p = 0.25}, {100, 100});
  const auto y = executor->forward(true)[0].to_vector<double>();
  const auto dropped = std::count(y.begin(), y.end(), 0.0);
  EXPECT_NEAR(static_cast<double>(dropped), 2500, 150);
  EXPECT_EQ(std::count(y.begin(), y.end(), 4.0), 10000 - dropped);
  executor->backward(std::vector<NDArray>{full({100, 100}, 3)});
  EXPECT_EQ(executor->grad_arrays()[0].to_vector<double>(), y) << "the gradient passes the same mask";
}

TEST(Dropout, DrawsNewNumbersEachTimeAndRepeatsWithTheSeed) {
  auto executor = bound({}, {50});
  seed(1);
  const auto first = executor->forward(true)[0].to_vector<double>();
  const auto second = executor->forward(true)[0].to_vector<double>();
  EXPECT_NE(first, second);
  seed(1);
  EXPECT_EQ(executor->forward(true)[0].to_vector<double>(), first);
}

TEST(Dropout, IsTheIdentityOutsideOfTraining) {
  EXPECT_EQ(bound({}, {50})->forward(false)[0].to_vector<double>(), std::vector<double>(50, 3));
  const auto always = bound({.mode = "always"}, {50})->forward(false)[0].to_vector<double>();
  EXPECT_GT(std::count(always.begin(), always.end(), 0.0), 5);
}

TEST(Dropout, WithoutProbabilityThereIsNothingToDrop) {
  auto executor = bound({.p = 0}, {4});
  EXPECT_EQ(executor->forward(true)[0].to_vector<double>(), std::vector<double>(4, 3));
  executor->backward(std::vector<NDArray>{counted({4})});
  EXPECT_EQ(executor->grad_arrays()[0].to_vector<double>(), (std::vector<double>{1, 2, 3, 4}));
}

TEST(Dropout, LinesAlongAxesShareOneDraw) {
  auto executor = bound({.axes = {1}}, {40, 5});
  const auto y = executor->forward(true)[0].to_vector<double>();
  for (size_t row = 0; row < 40; ++row)
    for (size_t i = 1; i < 5; ++i) EXPECT_EQ(y[row * 5 + i], y[row * 5]) << row;
  executor->backward(std::vector<NDArray>{full({40, 5}, 3)});
  EXPECT_EQ(executor->grad_arrays()[0].to_vector<double>(), y);
}

TEST(Dropout, ChecksItsParameters) {
  EXPECT_TRUE(fails_with([] { dropout(x, {.p = -0.5}, "drop"); }, "[Dropout drop] p must be between 0 and 1"));
  EXPECT_TRUE(fails_with([] { dropout(x, {.p = 1}, "drop"); }, "[Dropout drop] p must be below 1"));
  EXPECT_TRUE(fails_with([] { dropout(x, {.mode = "never"}, "drop"); }, "mode must be one of always, training: never"));
}

}  // namespace
}  // namespace symbind::testing
