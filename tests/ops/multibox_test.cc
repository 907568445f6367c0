#include "symbind/ops/multibox.h"

#include <limits>

#include <gtest/gtest.h>

#include "symbind/exec/executor.h"
#include "symbind/exec/invoke.h"

#include "tests/support/arrays.h"

namespace symbind::testing {
namespace {

NDArray numbers(const std::vector<double>& values, const Shape& shape) { return array(values, shape); }

const double nan = std::numeric_limits<double>::quiet_NaN();

// Class -1 ends the objects of an image, whatever else is in its row.
TEST(MultiBoxTarget, StopsAtTheFirstLabelWithoutAClass) {
  const NDArray anchor = numbers({0, 0, 0.5, 0.5, 0.5, 0.5, 1, 1}, {1, 2, 4});
  const NDArray label = numbers({-1, 0, 0, 0.5, 0.5, 2, 0.5, 0.5, 1, 1}, {1, 2, 5});
  const auto targets = invoke(multi_box_target, {anchor, label, zeros({1, 3, 2})}, {.ignore_label = -4});
  EXPECT_EQ(targets[2].to_vector<double>(), (std::vector<double>{-4, -4}));
}

TEST(MultiBoxTarget, TakesNoNegativeWhosePredictionIsNaN) {
  const NDArray anchor = numbers({0, 0, 0.5, 0.5, 0.5, 0.5, 1, 1, 0.6, 0, 1, 0.4}, {1, 3, 4});
  const NDArray label = numbers({1, 0, 0, 0.5, 0.5}, {1, 1, 5});
  const NDArray predictions = numbers({0, nan, 0, 0, nan, 0}, {1, 2, 3});
  const auto targets = invoke(multi_box_target, {anchor, label, predictions}, {.negative_mining_ratio = 5});
  EXPECT_EQ(targets[2].to_vector<double>(), (std::vector<double>{2, -1, 0}));
}

// MXNet ignores the parameter.
TEST(MultiBoxTarget, TakesTheLeastNumberOfNegatives) {
  const NDArray anchor = numbers({0, 0, 0.5, 0.5, 0.5, 0.5, 1, 1, 0.6, 0, 1, 0.4, 0, 0.6, 0.4, 1}, {1, 4, 4});
  const NDArray label = numbers({1, 0, 0, 0.5, 0.5}, {1, 1, 5});
  const NDArray predictions = numbers({0, 3, 1, 2, 0, 0, 0, 0}, {1, 2, 4});
  const auto targets = invoke(multi_box_target, {anchor, label, predictions},
                              {.negative_mining_ratio = 0.5, .minimum_negative_samples = 2});
  EXPECT_EQ(targets[2].to_vector<double>(), (std::vector<double>{2, -1, 0, 0}));
}

TEST(MultiBoxTarget, GivesBoxesWithoutAnAreaNoObject) {
  const NDArray anchor = numbers({0, 0, 0, 0, nan, nan, nan, nan}, {1, 2, 4});
  const auto targets = invoke(multi_box_target, {anchor, numbers({1, 0, 0, 1, 1}, {1, 1, 5}), zeros({1, 2, 2})}, {});
  for (const double value : targets[1].to_vector<double>()) EXPECT_EQ(value, 0);
}

TEST(MultiBoxDetection, DropsProbabilitiesOfNaN) {
  const NDArray anchor = numbers({0, 0, 0.5, 0.5, 0.5, 0.5, 1, 1}, {1, 2, 4});
  const auto found = invoke(multi_box_detection, {numbers({0, 0, nan, 0.5}, {1, 2, 2}), zeros({1, 8}), anchor}, {})[0]
                         .to_vector<double>();
  EXPECT_EQ(found, (std::vector<double>{0, 0.5, 0.5, 0.5, 1, 1, -1, -1, -1, -1, -1, -1}));
}

TEST(MultiBoxDetection, InfersTheNumberOfAnchors) {
  const auto net =
      multi_box_detection({Symbol::variable("p"), Symbol::variable("l"), Symbol::variable("a")}, MultiBoxDetection{});
  const auto shapes = infer_shape(net, {{"p", {2, 21, 7}}});
  EXPECT_EQ(shapes.args, (std::vector<std::vector<int64_t>>{{2, 21, 7}, {2, 28}, {1, 7, 4}}));
  EXPECT_EQ(shapes.outputs, (std::vector<std::vector<int64_t>>{{2, 7, 6}}));
}

TEST(MultiBox, SaysWhatIsWrong) {
  const Symbol x = Symbol::variable("x");
  EXPECT_TRUE(fails_with([&] { multi_box_prior(x, {.sizes = {}}); }, "sizes"));
  EXPECT_TRUE(fails_with([&] { multi_box_prior(x, {.ratios = {0}}); }, "ratios", "(0"));
  EXPECT_TRUE(fails_with([&] { multi_box_prior(x, {.steps = {0.5, -1}}); }, "steps"));
  EXPECT_TRUE(fails_with([&] { multi_box_target(x, {.variances = {1, 1, 1}}); }, "variances"));
  EXPECT_TRUE(fails_with([&] { multi_box_target(x, {.variances = {1, 1, 1, 0}}); }, "variances"));
  const auto target = multi_box_target({x, Symbol::variable("l"), Symbol::variable("c")}, MultiBoxTarget{}, "target");
  EXPECT_TRUE(fails_with(
      [&] {
        infer_shape(target, {{"x", {1, 3, 4}}, {"l", {2, 3, 4}}, {"c", {2, 2, 3}}});
      },
      "[_contrib_MultiBoxTarget target]", "label"));
  EXPECT_TRUE(fails_with(
      [&] {
        infer_shape(target, {{"x", {1, 3, 4}}, {"l", {2, 3, 5}}, {"c", {2, 2, 4}}});
      },
      "cls_pred"));
}

}  // namespace
}  // namespace symbind::testing
